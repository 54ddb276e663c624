// The work, over a Card: an interface with memory and parallel loops. The same code runs on a GPU (device.cu) and, for
// tests, on a host (host.cc).
#pragma once
#include <string>
#include <vector>

#include "arithmetic.h"

namespace proof {

// Rows and columns computed at a time: 16 reads of 16 bytes for 1,024 products.
constexpr int kTile = 8;

struct Walk {
  size_t blockBytes, blocks, steps;
};

// Entries of A by row, of B by column.
struct Expand {
  Key key;
  const Tables* tables;
  size_t n;
  bool turned;
  uint8_t* out;
  PROOF_FN void operator()(size_t index) const {
    uint8_t entries[kBlock];
    keystreamBlock(key, *tables, index, entries);
    const size_t row = index * kBlock / n, column = index * kBlock % n;
    for (size_t at = 0; at < kBlock; at++) {
      out[turned ? (column + at) * n + row : row * n + column + at] = entries[at] & kEntryMask;
    }
  }
};

// One tile of C = A·B.
struct Multiply {
  const uint8_t *a, *b;
  size_t n;
  int32_t* c;
  PROOF_FN void operator()(size_t index) const {
    const size_t across = n / kTile, top = index / across * kTile, left = index % across * kTile;
    int32_t sums[kTile][kTile] = {};
    for (size_t k = 0; k < n; k += kBlock) {
      uint32_t columns[kTile][4];
      for (int j = 0; j < kTile; j++) load(b + (left + j) * n + k, columns[j]);
      for (int i = 0; i < kTile; i++) {
        uint32_t row[4];
        load(a + (top + i) * n + k, row);
        for (int j = 0; j < kTile; j++) {
          for (int at = 0; at < 4; at++) sums[i][j] = dot4(row[at], columns[j][at], sums[i][j]);
        }
      }
    }
    for (int i = 0; i < kTile; i++) {
      for (int j = 0; j < kTile; j++) c[(top + i) * n + left + j] = sums[i][j];
    }
  }
  // Rows and allocations are aligned to blocks.
  PROOF_FN static void load(const uint8_t* from, uint32_t* to) {
    const uint32_t* words = static_cast<const uint32_t*>(__builtin_assume_aligned(from, kBlock));
    for (int at = 0; at < 4; at++) to[at] = words[at];
  }
};

// Hashes a row of C with its index.
struct Leaf {
  const int32_t* c;
  const Tables* tables;
  size_t n;
  Hash* out;
  PROOF_FN void operator()(size_t index) const {
    Sha256 sha(*tables);
    sha.byte(0);
    for (int shift = 24; shift >= 0; shift -= 8) sha.byte(uint8_t(index >> shift));
    // Hosts and cards are little-endian.
    out[index] = sha.add(c + index * n, n * sizeof(int32_t)).end();
  }
};

struct Fill {
  Key key;
  const Tables* tables;
  uint8_t* out;
  PROOF_FN void operator()(size_t index) const {
    keystreamBlock(key, *tables, index, out + index * kBlock);
  }
};

// A single thread, because each step reads at a position given by the previous read.
struct Wander {
  Hash seed;
  const Tables* tables;
  const uint8_t* memory;
  Walk walk;
  Hash* out;
  PROOF_FN void operator()(size_t) const {
    Hash state = Sha256(*tables).add(seed.bytes, kHash).add("walk", 4).end();
    for (size_t step = 0; step < walk.steps; step++) {
      uint64_t place = 0;
      for (int at = 0; at < 6; at++) place = place << 8 | state.bytes[at];
      const uint8_t* block = memory + place % walk.blocks * walk.blockBytes;
      state = Sha256(*tables).add(state.bytes, kHash).add(block, walk.blockBytes).end();
    }
    *out = state;
  }
};

inline Hash partSeed(const Tables& tables, const Hash& seed, char part) {
  return Sha256(tables).add(seed.bytes, kHash).byte(uint8_t(part)).end();
}

inline Hash nextSeed(const Tables& tables, const Hash& seed, const Hash& root) {
  return Sha256(tables).add(seed.bytes, kHash).add(root.bytes, kHash).end();
}

// Levels from the leaves to the root; a node without a sibling moves up unchanged.
using Tree = std::vector<std::vector<Hash>>;

inline Tree treeOf(const Tables& tables, std::vector<Hash> leaves) {
  Tree tree{std::move(leaves)};
  while (tree.back().size() > 1) {
    const std::vector<Hash>& level = tree.back();
    std::vector<Hash> parents;
    for (size_t at = 0; at < level.size(); at += 2) {
      if (at + 1 == level.size()) {
        parents.push_back(level[at]);
        continue;
      }
      Sha256 sha(tables);
      parents.push_back(sha.byte(1).add(level[at].bytes, kHash).add(level[at + 1].bytes, kHash).end());
    }
    tree.push_back(std::move(parents));
  }
  return tree;
}

inline std::vector<Hash> pathOf(const Tree& tree, size_t index) {
  std::vector<Hash> path;
  for (size_t height = 0; height + 1 < tree.size(); height++) {
    const size_t neighbour = (index >> height) ^ 1;
    if (neighbour < tree[height].size()) path.push_back(tree[height][neighbour]);
  }
  return path;
}

// Computes products of one size, one after the other in the same memory.
template <class Card>
class Products {
 public:
  Products(Card& card, const Tables& tables, const Tables* there, size_t n)
      : card_(card), tables_(tables), there_(there), n_(n), a_(card.template take<uint8_t>(n * n)),
        b_(card.template take<uint8_t>(n * n)), c_(card.template take<int32_t>(n * n)),
        leaves_(card.template take<Hash>(n)) {}

  // Hash tree over the rows of a product, valid until the next product.
  Tree make(const Hash& seed) {
    const size_t blocks = n_ * n_ / kBlock;
    card_.each(blocks, Expand{keyOf(partSeed(tables_, seed, 'A'), tables_), there_, n_, false, a_});
    card_.each(blocks, Expand{keyOf(partSeed(tables_, seed, 'B'), tables_), there_, n_, true, b_});
    card_.each(n_ * n_ / (kTile * kTile), Multiply{a_, b_, n_, c_});
    card_.each(n_, Leaf{c_, there_, n_, leaves_});
    return treeOf(tables_, card_.get(leaves_, n_));
  }

  std::vector<int32_t> row(size_t index) { return card_.get(c_ + index * n_, n_); }

 private:
  Card& card_;
  const Tables& tables_;
  const Tables* there_;
  size_t n_;
  uint8_t *a_, *b_;
  int32_t* c_;
  Hash* leaves_;
};

}  // namespace proof
