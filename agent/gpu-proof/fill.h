// The fill: memory whose blocks can only be computed one after the other, each from two earlier ones. The same code runs
// on a card, where a team of 32 threads computes a block, and on a host, where the team is one thread.
// Results equal those of shared/proof-of-work/fill.ts byte for byte.
#pragma once
#include "arithmetic.h"

namespace proof {

constexpr size_t kFillBytes = 1024, kFillWords = kFillBytes / sizeof(uint64_t);
// Blocks that the hash tree covers with one leaf.
constexpr size_t kLeafBlocks = 4, kLeafBytes = kLeafBlocks * kFillBytes;
// Parts of a lane. A block refers to other lanes only in earlier slices, so that all lanes fill a slice at once.
constexpr size_t kSlices = 16;

struct Layout {
  uint64_t lanes, laneBlocks;
  PROOF_FN uint64_t blocks() const { return lanes * laneBlocks; }
  PROOF_FN uint64_t leaves() const { return blocks() / kLeafBlocks; }
};

struct FillSeed {
  uint64_t words[4];
};

// Hosts and cards are little-endian.
inline FillSeed fillSeedOf(const Hash& hash) {
  FillSeed seed;
  memcpy(seed.words, hash.bytes, sizeof seed.words);
  return seed;
}

// The finalizer of SplitMix64, a bijection.
PROOF_FN uint64_t scatter(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

PROOF_FN uint64_t draw(const FillSeed& seed, uint64_t block, uint64_t which) {
  return scatter(seed.words[0] + scatter(block * 4 + which + 1));
}

// Block that the block at a position (at least 2) of a lane refers to beside the previous one. The distance is
// distributed as in DRSample: first its magnitude, then the distance. Most distances are short, so that recomputing a
// block requires a long sequence of others.
PROOF_FN uint64_t parentOf(const FillSeed& seed, const Layout& layout, uint64_t lane, uint64_t at) {
  const uint64_t block = lane * layout.laneBlocks + at;
  int magnitudes = 0;
  while (at >> (magnitudes + 1) != 0) magnitudes++;
  const uint64_t most = uint64_t(2) << draw(seed, block, 0) % magnitudes;
  const uint64_t least = most / 2 < 2 ? 2 : most / 2;
  const uint64_t from = at - (least + draw(seed, block, 1) % (most - least + 1));
  const uint64_t slice = layout.laneBlocks / kSlices;
  const uint64_t source = from >= at / slice * slice ? lane : draw(seed, block, 2) % layout.lanes;
  return source * layout.laneBlocks + from;
}

PROOF_FN uint64_t multiplyAdd(uint64_t a, uint64_t b) { return a + b + 2 * uint64_t(uint32_t(a)) * uint32_t(b); }
PROOF_FN uint64_t rotr64(uint64_t x, int by) { return x >> by | x << (64 - by); }

// A quarter of a round of BLAKE2b, with multiplications as in Argon2 (RFC 9106).
PROOF_FN void quarter(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d) {
  a = multiplyAdd(a, b), d = rotr64(d ^ a, 32);
  c = multiplyAdd(c, d), b = rotr64(b ^ c, 24);
  a = multiplyAdd(a, b), d = rotr64(d ^ a, 16);
  c = multiplyAdd(c, d), b = rotr64(b ^ c, 63);
}

// Team: threads that compute a block together. Each takes the indices from `first()` in steps of `step()`; `sync()`
// waits until all threads are there. `mixed` is memory for a block that the team shares.
// Returns in `out` the block from the previous one and its parent; null stands for a block of zeros.
template <class Team>
PROOF_FN void makeBlock(const Team& team, const FillSeed& seed, uint64_t block, const uint64_t* previous,
                        const uint64_t* parent, uint64_t* mixed, uint64_t* out) {
  for (size_t at = team.first(); at < kFillWords; at += team.step()) {
    uint64_t word = at < 4 ? seed.words[at] : at == 4 ? block : 0;
    if (previous != nullptr) word ^= previous[at];
    if (parent != nullptr) word ^= parent[at];
    mixed[at] = out[at] = word;
  }
  team.sync();
  // Eight rows of 16 words, then eight columns; of each, first the four columns of its 4 × 4 words, then the diagonals.
  for (int phase = 0; phase < 4; phase++) {
    const bool isColumn = phase >= 2;
    const size_t turn = phase % 2;
    for (size_t at = team.first(); at < 32; at += team.step()) {
      const size_t line = at / 4, place = at % 4;
      uint64_t* words[4];
      for (size_t k = 0; k < 4; k++) {
        const size_t word = 4 * k + (place + k * turn) % 4;
        words[k] = mixed + (isColumn ? 2 * line + word / 2 * 16 + word % 2 : 16 * line + word);
      }
      quarter(*words[0], *words[1], *words[2], *words[3]);
    }
    team.sync();
  }
  for (size_t at = team.first(); at < kFillWords; at += team.step()) out[at] ^= mixed[at];
}

// Fills one slice of one lane.
struct FillSlice {
  FillSeed seed;
  Layout layout;
  uint64_t slice;
  uint64_t* memory;
  template <class Team>
  PROOF_FN void operator()(const Team& team, size_t lane, uint64_t* mixed) const {
    const uint64_t length = layout.laneBlocks / kSlices;
    for (uint64_t at = slice * length; at < (slice + 1) * length; at++) {
      const uint64_t block = lane * layout.laneBlocks + at;
      uint64_t* out = memory + block * kFillWords;
      const uint64_t* previous = at == 0 ? nullptr : out - kFillWords;
      const uint64_t* parent = at < 2 ? nullptr : memory + parentOf(seed, layout, lane, at) * kFillWords;
      makeBlock(team, seed, block, previous, parent, mixed, out);
    }
  }
};

}  // namespace proof
