//! pgbench's hash functions FNV-1a and MurmurHash2, and its pseudo-random permutation.

use crate::prng::Prng;

/// `hash_fnv1a(value, seed)`: 64-bit FNV-1a over the eight bytes of `value`, least significant first.
/// <http://www.isthe.com/chongo/tech/comp/fnv/>
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let mut hash = OFFSET_BASIS ^ seed as u64;
    for byte in value.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    }
    hash as i64
}

/// `hash_murmur2(value, seed)`: 64-bit MurmurHash2 (variant A) of one 8-byte block.
/// <https://github.com/aappleby/smhasher>
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    const LENGTH_BYTES: u64 = 8;
    let mut block = (value as u64).wrapping_mul(MULTIPLIER);
    block = (block ^ (block >> SHIFT)).wrapping_mul(MULTIPLIER);
    let mut hash = seed as u64 ^ LENGTH_BYTES.wrapping_mul(MULTIPLIER);
    hash = (hash ^ block).wrapping_mul(MULTIPLIER);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> SHIFT)) as i64
}

/// `permute(value, size, seed)`: a bijection of `0..size`, chosen by `seed`. `size` is positive.
///
/// Six rounds; each mixes the lower and then the upper end of the range, which overlap and whose lengths are a power of
/// two, and then shifts everything by a random offset.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    const ROUNDS: usize = 6;
    if size < 2 {
        return 0;
    }
    let mut rng = Prng::seeded(seed as u64);
    let size = size as u64;
    let half = Half { bits: size.ilog2() };
    let mut v = value as u64 % size;
    for _ in 0..ROUNDS {
        v = half.mix(v, &mut rng);
        v = size - 1 - half.mix(size - 1 - v, &mut rng);
        v = (v + rng.next_up_to(size - 1)) % size;
    }
    v as i64
}

/// The greatest power of two that fits in the range being permuted.
struct Half {
    bits: u32,
}

impl Half {
    /// Permutes the numbers below 2^bits by an odd factor, an exclusive or and a rotation, all but the last drawn from
    /// `rng`; larger numbers are unchanged.
    fn mix(&self, v: u64, rng: &mut Prng) -> u64 {
        let mask = (1_u64 << self.bits) - 1;
        let factor = (rng.next_u64() & mask) | 1;
        let toggle = rng.next_u64() & mask;
        if v > mask {
            return v;
        }
        let mixed = (v.wrapping_mul(factor) ^ toggle) & mask;
        ((mixed << 1) & mask) | (mixed >> (self.bits - 1))
    }
}
