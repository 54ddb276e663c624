// A prover that keeps a tenth of its fill and computes the other blocks again when they are read, and an honest one, in
// the same process. The memory in which it computes blocks again is not counted, in its favour.
//   fill-tenth LANES LANE_BLOCKS STEPS [from-start]   prints seconds of both: for the walk alone, or with `from-start` for
// a prover that has a tenth of the memory while it fills, too.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "work.h"

using namespace proof;

constexpr uint64_t kKept = 10;

struct OneThread {
  size_t first() const { return 0; }
  size_t step() const { return 1; }
  void sync() const {}
};

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Prover {
  FillSeed seed;
  Layout layout;
  bool isHonest;
  std::vector<uint64_t> memory, scratch;
  std::vector<char> needed;
  std::vector<uint64_t> order;

  Prover(const FillSeed& seed, const Layout& layout, bool isHonest)
      : seed(seed), layout(layout), isHonest(isHonest), memory(layout.blocks() * kFillWords),
        scratch(layout.blocks() * kFillWords), needed(layout.blocks()) {}

  bool isKept(uint64_t block) const { return isHonest || block % kKept == 0; }

  void make(uint64_t block, const uint64_t* previous, const uint64_t* parent, uint64_t* out) const {
    uint64_t mixed[kFillWords];
    makeBlock(OneThread{}, seed, block, previous, parent, mixed, out);
  }

  // Calls `use` with each source of a block.
  template <class Use>
  void eachSource(uint64_t block, const Use& use) const {
    const uint64_t lane = block / layout.laneBlocks, at = block % layout.laneBlocks;
    if (at > 0) use(block - 1);
    if (at > 1) use(parentOf(seed, layout, lane, at));
  }

  // Returns a block: a kept one, or one that is computed again with all blocks that it depends on.
  const uint64_t* read(uint64_t target) {
    if (isKept(target)) return &memory[target * kFillWords];
    order.assign(1, target);
    needed[target] = 1;
    for (size_t at = 0; at < order.size(); at++) {
      eachSource(order[at], [&](uint64_t source) {
        if (isKept(source) || needed[source]) return;
        needed[source] = 1;
        order.push_back(source);
      });
    }
    // Sources have an earlier place in their lanes.
    std::vector<uint64_t> blocks = order;
    sortByPlace(blocks);
    for (const uint64_t block : blocks) {
      const uint64_t* sources[2] = {nullptr, nullptr};
      int found = 0;
      eachSource(block, [&](uint64_t source) {
        sources[found++] = isKept(source) ? &memory[source * kFillWords] : &scratch[source * kFillWords];
      });
      make(block, sources[0], sources[1], &scratch[block * kFillWords]);
    }
    for (const uint64_t block : order) needed[block] = 0;
    return &scratch[target * kFillWords];
  }

  // Counting sort, so that sorting costs the cheater little.
  void sortByPlace(std::vector<uint64_t>& blocks) const {
    std::vector<uint32_t> first(layout.laneBlocks + 1);
    for (const uint64_t block : blocks) first[block % layout.laneBlocks + 1]++;
    for (uint64_t at = 0; at < layout.laneBlocks; at++) first[at + 1] += first[at];
    std::vector<uint64_t> sorted(blocks.size());
    for (const uint64_t block : blocks) sorted[first[block % layout.laneBlocks]++] = block;
    blocks.swap(sorted);
  }

  // Fills all memory; a prover with a tenth keeps only a tenth, but is given all blocks that it has not kept.
  void fill() {
    for (size_t slice = 0; slice < kSlices; slice++) {
      for (size_t lane = 0; lane < layout.lanes; lane++) {
        uint64_t mixed[kFillWords];
        FillSlice{seed, layout, slice, memory.data()}(OneThread{}, lane, mixed);
      }
    }
  }

  // Fills with a tenth of the memory: reads each parent that it has not kept by computing it again.
  void fillFromTenth() {
    std::vector<uint64_t> before(kFillWords), parent(kFillWords), out(kFillWords);
    for (uint64_t block = 0; block < layout.blocks(); block++) {
      const uint64_t at = block % layout.laneBlocks;
      if (at > 1) {
        const uint64_t* found = read(parentOf(seed, layout, 0, at));
        parent.assign(found, found + kFillWords);
      }
      make(block, at > 0 ? before.data() : nullptr, at > 1 ? parent.data() : nullptr, out.data());
      if (isKept(block)) std::copy(out.begin(), out.end(), memory.begin() + block * kFillWords);
      before = out;
    }
  }

  uint64_t walk(const Tables& tables, const Hash& nonce, size_t steps) {
    Hash state = nonce;
    for (size_t step = 0; step < steps; step++) {
      uint64_t place = 0;
      for (int at = 0; at < 6; at++) place = place << 8 | state.bytes[at];
      const uint64_t first = place % layout.leaves() * kLeafBlocks;
      Sha256 sha(tables);
      sha.add(state.bytes, kHash);
      for (uint64_t block = first; block < first + kLeafBlocks; block++) sha.add(read(block), kFillBytes);
      state = sha.end();
    }
    return state.bytes[0] | uint64_t(state.bytes[1]) << 8;
  }
};

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const Layout layout{strtoull(arguments[1], nullptr, 10), strtoull(arguments[2], nullptr, 10)};
  const size_t steps = strtoull(arguments[3], nullptr, 10);
  const bool isFromStart = count > 4 && layout.lanes == 1;
  Tables tables;
  makeTables(tables);
  const Hash nonce = Sha256(tables).add("nonce", 5).end();
  const FillSeed seed = fillSeedOf(Sha256(tables).add("seed", 4).end());
  double seconds[2];
  uint64_t ends[2];
  for (const bool isHonest : {true, false}) {
    Prover prover(seed, layout, isHonest);
    double began = now();
    if (isFromStart && !isHonest) prover.fillFromTenth();
    else prover.fill();
    if (!isFromStart) began = now();
    ends[isHonest] = prover.walk(tables, nonce, steps);
    seconds[isHonest] = now() - began;
  }
  // Both have read the same blocks.
  if (ends[0] != ends[1]) return 1;
  printf("{\"honest_s\":%.6f,\"tenth_s\":%.6f}\n", seconds[1], seconds[0]);
}
