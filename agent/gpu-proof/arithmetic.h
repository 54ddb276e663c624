// The arithmetic of products and hash trees, for cards and hosts: SHA-256, the keystream (AES-256 in counter mode) and
// dot products. Results equal those of shared/proof-of-work byte for byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define PROOF_FN __host__ __device__ inline
#define PROOF_UNROLL _Pragma("unroll")
#else
#define PROOF_FN inline
#define PROOF_UNROLL _Pragma("GCC unroll 64")
#endif

namespace proof {

constexpr size_t kHash = 32;
constexpr size_t kBlock = 16;
constexpr int kAesRounds = 14;
constexpr uint8_t kEntryMask = 0x0f;

struct Hash {
  uint8_t bytes[kHash];
};

// Fractions of the cube roots of the first 64 primes (FIPS 180-4).
const uint32_t kSha[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// Lookup tables, copied to the card once.
struct Tables {
  uint32_t sha[64];
  // AES: the S-box, and S-box combined with MixColumns; the other three tables are rotations of it.
  uint8_t sbox[256];
  uint32_t mix[256];
};

inline uint8_t timesTwo(uint8_t x) { return uint8_t(x << 1 ^ (x & 0x80 ? 0x1b : 0)); }

// Computes the S-box by its definition (FIPS 197): the inverse in GF(2^8), then an affine map.
inline void makeTables(Tables& tables) {
  memcpy(tables.sha, kSha, sizeof kSha);
  uint8_t p = 1, q = 1;
  do {
    p ^= timesTwo(p);
    q ^= q << 1;
    q ^= q << 2;
    q ^= q << 4;
    if (q & 0x80) q ^= 0x09;
    auto rotated = [q](int by) { return uint8_t(q << by | q >> (8 - by)); };
    tables.sbox[p] = q ^ rotated(1) ^ rotated(2) ^ rotated(3) ^ rotated(4) ^ 0x63;
  } while (p != 1);
  tables.sbox[0] = 0x63;
  for (int at = 0; at < 256; at++) {
    const uint8_t s = tables.sbox[at], twice = timesTwo(s);
    tables.mix[at] = uint32_t(twice) << 24 | uint32_t(s) << 16 | uint32_t(s) << 8 | uint8_t(twice ^ s);
  }
}

PROOF_FN uint32_t rotr(uint32_t x, int by) { return x >> by | x << (32 - by); }

// Reads four bytes, the most significant first.
PROOF_FN uint32_t bigEndian(const uint8_t* from) {
#ifdef __CUDA_ARCH__
  // Two aligned words: a card takes longer to read four bytes.
  const uint32_t past = uint32_t(uintptr_t(from) % 4);
  const uint32_t* words = reinterpret_cast<const uint32_t*>(from - past);
  return __byte_perm(words[0], past == 0 ? 0 : words[1], 0x0123 + past * 0x1111);
#else
  return uint32_t(from[0]) << 24 | uint32_t(from[1]) << 16 | uint32_t(from[2]) << 8 | from[3];
#endif
}

class Sha256 {
 public:
  PROOF_FN explicit Sha256(const Tables& tables) : k_(tables.sha) {
    const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int at = 0; at < 8; at++) state_[at] = first[at];
  }
  PROOF_FN Sha256& byte(uint8_t value) {
    const size_t at = length_++ % 64;
    const int shift = 24 - 8 * int(at % 4);
    const uint32_t kept = at % 4 == 0 ? 0 : w_[at / 4];
    w_[at / 4] = kept | uint32_t(value) << shift;
    if (at == 63) compress(w_);
    return *this;
  }
  PROOF_FN Sha256& add(const void* data, size_t length) {
    const uint8_t* from = static_cast<const uint8_t*>(data);
    size_t at = 0;
    while (at < length && length_ % 64 != 0) byte(from[at++]);
    // Whole words: four times as fast as single bytes.
    for (; at + 64 <= length; at += 64, length_ += 64) {
      uint32_t words[16];
      PROOF_UNROLL for (int word = 0; word < 16; word++) words[word] = bigEndian(from + at + 4 * word);
      compress(words);
    }
    while (at < length) byte(from[at++]);
    return *this;
  }
  PROOF_FN Hash end() {
    const uint64_t bits = uint64_t(length_) * 8;
    byte(0x80);
    while (length_ % 64 != 56) byte(0);
    for (int shift = 56; shift >= 0; shift -= 8) byte(uint8_t(bits >> shift));
    Hash hash;
    for (int at = 0; at < 32; at++) hash.bytes[at] = uint8_t(state_[at / 4] >> (24 - 8 * (at % 4)));
    return hash;
  }

 private:
  // Unrolled, so that a card keeps all words in registers.
  PROOF_FN void compress(const uint32_t* block) {
    uint32_t s[8], w[16];
    PROOF_UNROLL for (int at = 0; at < 8; at++) s[at] = state_[at];
    PROOF_UNROLL for (int at = 0; at < 16; at++) w[at] = block[at];
    PROOF_UNROLL for (int t = 0; t < 64; t++) {
      if (t >= 16) {
        const uint32_t early = w[(t + 1) % 16], late = w[(t + 14) % 16];
        w[t % 16] += (rotr(early, 7) ^ rotr(early, 18) ^ early >> 3) + w[(t + 9) % 16] +
                     (rotr(late, 17) ^ rotr(late, 19) ^ late >> 10);
      }
      const uint32_t one = s[7] + (rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25)) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6])) + k_[t] + w[t % 16];
      const uint32_t two = (rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22)) +
                           ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      PROOF_UNROLL for (int at = 7; at > 0; at--) s[at] = s[at - 1];
      s[4] += one;
      s[0] = one + two;
    }
    PROOF_UNROLL for (int at = 0; at < 8; at++) state_[at] += s[at];
  }
  const uint32_t* k_;
  uint32_t state_[8];
  uint32_t w_[16];
  size_t length_ = 0;
};

// The round keys of one seed.
struct Key {
  uint32_t words[4 * (kAesRounds + 1)];
};

inline Key keyOf(const Hash& seed, const Tables& tables) {
  auto substituted = [&](uint32_t x) {
    uint32_t y = 0;
    for (int shift = 24; shift >= 0; shift -= 8) y |= uint32_t(tables.sbox[x >> shift & 0xff]) << shift;
    return y;
  };
  Key key;
  for (int at = 0; at < 8; at++) {
    key.words[at] = bigEndian(seed.bytes + 4 * at);
  }
  uint8_t round = 1;
  for (int at = 8; at < 4 * (kAesRounds + 1); at++) {
    uint32_t next = key.words[at - 1];
    if (at % 8 == 0) {
      next = substituted(rotr(next, 24)) ^ uint32_t(round) << 24;
      round = timesTwo(round);
    } else if (at % 8 == 4) {
      next = substituted(next);
    }
    key.words[at] = key.words[at - 8] ^ next;
  }
  return key;
}

// Returns the 16 bytes of the keystream at a block index.
PROOF_FN void keystreamBlock(const Key& key, const Tables& tables, uint64_t index, uint8_t* out) {
  uint32_t s[4] = {0, 0, uint32_t(index >> 32), uint32_t(index)};
  for (int at = 0; at < 4; at++) s[at] ^= key.words[at];
  for (int round = 1; round < kAesRounds; round++) {
    uint32_t t[4];
    for (int at = 0; at < 4; at++) {
      t[at] = tables.mix[s[at] >> 24] ^ rotr(tables.mix[s[(at + 1) % 4] >> 16 & 0xff], 8) ^
              rotr(tables.mix[s[(at + 2) % 4] >> 8 & 0xff], 16) ^ rotr(tables.mix[s[(at + 3) % 4] & 0xff], 24) ^
              key.words[4 * round + at];
    }
    for (int at = 0; at < 4; at++) s[at] = t[at];
  }
  for (int at = 0; at < 4; at++) {
    const uint32_t word = key.words[4 * kAesRounds + at];
    for (int row = 0; row < 4; row++) {
      const int shift = 24 - 8 * row;
      out[4 * at + row] = tables.sbox[s[(at + row) % 4] >> shift & 0xff] ^ uint8_t(word >> shift);
    }
  }
}

// Adds the sum of four products of bytes below 128.
PROOF_FN int32_t dot4(uint32_t a, uint32_t b, int32_t sum) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
  return __dp4a(int32_t(a), int32_t(b), sum);
#else
  for (int shift = 0; shift < 32; shift += 8) sum += int32_t(a >> shift & 0xff) * int32_t(b >> shift & 0xff);
  return sum;
#endif
}

}  // namespace proof
