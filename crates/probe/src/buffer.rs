//! Data to write: incompressible, not deduplicable, and aligned for `O_DIRECT`.

const ALIGNMENT: usize = 8192;

/// Random bytes that begin at a multiple of 8 kB.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn random(length: usize, seed: u64) -> Self {
        let mut bytes = vec![0; length + ALIGNMENT];
        let begin = bytes.as_ptr().align_offset(ALIGNMENT);
        let mut state = seed | 1;
        for word in bytes.as_chunks_mut::<8>().0 {
            // xorshift64, Marsaglia 2003.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_ne_bytes();
        }
        Self {
            bytes,
            begin,
            length,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..self.begin + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_and_no_page_is_like_another() {
        let buffer = Buffer::random(1 << 20, 1);
        assert_eq!(buffer.bytes().as_ptr() as usize % ALIGNMENT, 0);
        let mut pages: Vec<_> = buffer.bytes().chunks(4096).collect();
        assert_eq!(pages.len(), 256);
        pages.sort();
        pages.dedup();
        assert_eq!(pages.len(), 256);
    }
}
