//! What all pages have in common: header and line pointers (PostgreSQL's `bufpage.h`, `itemid.h`). Little-endian, as the
//! machines that we run on.

/// `BLCKSZ`. Servers that were built with another are refused by their files' sizes.
pub(crate) const PAGE_BYTES: usize = 8192;
/// `SizeOfPageHeaderData`.
pub(crate) const HEADER_BYTES: usize = 24;
/// `sizeof(ItemIdData)`.
pub(crate) const LINE_POINTER_BYTES: usize = 4;
/// `PD_ALL_VISIBLE`.
pub(crate) const ALL_VISIBLE: u16 = 0x0004;
/// `pd_checksum`.
pub(crate) const CHECKSUM_AT: usize = 8;

const FLAGS_AT: usize = 10;
const LOWER_AT: usize = 12;
const UPPER_AT: usize = 14;
const SPECIAL_AT: usize = 16;
const SIZE_AND_VERSION_AT: usize = 18;
/// `PG_PAGE_LAYOUT_VERSION`, since PostgreSQL 8.3.
const LAYOUT_VERSION: u16 = 4;
/// `LP_NORMAL`.
const NORMAL: u32 = 1;

/// A page.
pub(crate) type Page = [u8; PAGE_BYTES];

/// `MAXALIGN`: to 8 bytes.
pub(crate) const fn max_align(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

/// The free space that `fillfactor` leaves, as rounded by `RelationGetTargetPageFreeSpace`.
pub(crate) const fn free_bytes(fillfactor: usize) -> usize {
    PAGE_BYTES * (100 - fillfactor) / 100
}

/// An empty page (`PageInit`): its LSN is 0, older than any WAL, as of pages that are built without WAL.
pub(crate) fn begin(page: &mut Page, flags: u16, special_bytes: usize) {
    page.fill(0);
    put_u16(page, FLAGS_AT, flags);
    put_u16(page, LOWER_AT, HEADER_BYTES as u16);
    put_u16(page, UPPER_AT, (PAGE_BYTES - special_bytes) as u16);
    put_u16(page, SPECIAL_AT, (PAGE_BYTES - special_bytes) as u16);
    put_u16(
        page,
        SIZE_AND_VERSION_AT,
        PAGE_BYTES as u16 | LAYOUT_VERSION,
    );
}

/// Sets the offsets at which line pointers end and items begin.
pub(crate) fn set_bounds(page: &mut Page, lower: usize, upper: usize) {
    put_u16(page, LOWER_AT, lower as u16);
    put_u16(page, UPPER_AT, upper as u16);
}

/// Line pointer `number`, of which 1 is the first, to `bytes` bytes from `at`.
pub(crate) fn point(page: &mut Page, number: usize, at: usize, bytes: usize) {
    let pointer = at as u32 | NORMAL << 15 | (bytes as u32) << 17;
    let place = HEADER_BYTES + (number - 1) * LINE_POINTER_BYTES;
    page[place..place + LINE_POINTER_BYTES].copy_from_slice(&pointer.to_le_bytes());
}

/// Whether it says of itself that it is a page of our size and version.
pub(crate) fn is_page(page: &Page) -> bool {
    get_u16(page, SIZE_AND_VERSION_AT) == PAGE_BYTES as u16 | LAYOUT_VERSION
}

pub(crate) fn put_u16(page: &mut [u8], at: usize, value: u16) {
    page[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// An `ItemPointerData`: the halves of a block's number, the greater first, and the number of a line pointer.
pub(crate) fn put_item_pointer(page: &mut [u8], at: usize, block: u32, number: u16) {
    put_u16(page, at, (block >> 16) as u16);
    put_u16(page, at + 2, block as u16);
    put_u16(page, at + 4, number);
}

pub(crate) fn get_u16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

pub(crate) fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

#[cfg(target_endian = "big")]
compile_error!("pages are written as little-endian machines have them");
