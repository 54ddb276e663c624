// The work, over a Card: an interface with memory and parallel loops. The same code runs on a GPU (device.cu) and, for
// tests, on a host (host.cc).
#pragma once
#include <string>
#include <vector>

#include "fill.h"

namespace proof {

// Rows and columns computed at a time: 16 reads of 16 bytes for 1,024 products.
constexpr int kTile = 8;

// Pieces by which rows are hashed, so that many threads share a long row.
constexpr size_t kPieceBytes = 4096;

// Entries of A by row, of B by column. Neighbouring threads write neighbouring entries.
struct Expand {
  Key key;
  const Tables* tables;
  size_t n;
  bool turned;
  uint8_t* out;
  PROOF_FN void operator()(size_t index) const {
    uint8_t entries[kBlock];
    const size_t row = turned ? index % n : index * kBlock / n;
    const size_t column = turned ? index / n * kBlock : index * kBlock % n;
    keystreamBlock(key, *tables, (row * n + column) / kBlock, entries);
    for (size_t at = 0; at < kBlock; at++) {
      out[turned ? (column + at) * n + row : row * n + column + at] = entries[at] & kEntryMask;
    }
  }
};

// One tile of C = A·B, on a processor without units for matrices.
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

// Hashes a piece of a row.
struct Piece {
  const void* rows;
  const Tables* tables;
  size_t rowBytes, pieces;
  Hash* out;
  PROOF_FN void operator()(size_t index) const {
    const size_t from = index % pieces * kPieceBytes, left = rowBytes - from;
    const uint8_t* piece = static_cast<const uint8_t*>(rows) + index / pieces * rowBytes + from;
    out[index] = Sha256(*tables).add(piece, left < kPieceBytes ? left : kPieceBytes).end();
  }
};

// Hashes a row of bytes with its index.
struct Leaf {
  const void* rows;
  const Tables* tables;
  size_t rowBytes;
  Hash* out;
  PROOF_FN void operator()(size_t index) const {
    Sha256 sha(*tables);
    sha.byte(0);
    for (int shift = 24; shift >= 0; shift -= 8) sha.byte(uint8_t(index >> shift));
    // Hosts and cards are little-endian.
    out[index] = sha.add(static_cast<const uint8_t*>(rows) + index * rowBytes, rowBytes).end();
  }
};

// Hashes two neighbours of a level; one without a neighbour moves up unchanged.
struct Parent {
  const Hash* level;
  size_t width;
  const Tables* tables;
  Hash* out;
  PROOF_FN void operator()(size_t index) const {
    const Hash* left = level + 2 * index;
    if (2 * index + 1 == width) {
      out[index] = *left;
      return;
    }
    Sha256 sha(*tables);
    out[index] = sha.byte(1).add(left[0].bytes, kHash).add(left[1].bytes, kHash).end();
  }
};

inline Hash partSeed(const Tables& tables, const Hash& seed, char part) {
  return Sha256(tables).add(seed.bytes, kHash).byte(uint8_t(part)).end();
}

inline Hash nextSeed(const Tables& tables, const Hash& seed, const Hash& root) {
  return Sha256(tables).add(seed.bytes, kHash).add(root.bytes, kHash).end();
}

// Hash tree over rows of bytes, in the memory of the card. A row longer than a piece is hashed as the hashes of its pieces.
template <class Card>
class Tree {
 public:
  Tree(Card& card, const Tables* there, size_t leaves, size_t rowBytes)
      : card_(card), there_(there), rowBytes_(rowBytes), pieces_((rowBytes + kPieceBytes - 1) / kPieceBytes) {
    if (pieces_ > 1) pieceHashes_ = card.template take<Hash>(leaves * pieces_);
    for (size_t width = leaves;; width = (width + 1) / 2) {
      levels_.push_back({card.template take<Hash>(width), width});
      if (width == 1) break;
    }
  }
  void build(const void* rows) {
    const Level& leaves = levels_[0];
    if (pieces_ > 1) {
      card_.each(leaves.width * pieces_, Piece{rows, there_, rowBytes_, pieces_, pieceHashes_});
      card_.each(leaves.width, Leaf{pieceHashes_, there_, pieces_ * kHash, leaves.hashes});
    } else {
      card_.each(leaves.width, Leaf{rows, there_, rowBytes_, leaves.hashes});
    }
    for (size_t height = 1; height < levels_.size(); height++) {
      const Level& below = levels_[height - 1];
      card_.each(levels_[height].width, Parent{below.hashes, below.width, there_, levels_[height].hashes});
    }
  }
  Hash root() const { return card_.get(levels_.back().hashes, 1)[0]; }
  // Siblings from the leaf to the root.
  std::vector<Hash> pathOf(size_t index) const {
    std::vector<Hash> path;
    for (size_t height = 0; height + 1 < levels_.size(); height++) {
      const size_t neighbour = (index >> height) ^ 1;
      if (neighbour < levels_[height].width) path.push_back(card_.get(levels_[height].hashes + neighbour, 1)[0]);
    }
    return path;
  }

 private:
  struct Level {
    Hash* hashes;
    size_t width;
  };
  Card& card_;
  const Tables* there_;
  size_t rowBytes_, pieces_;
  Hash* pieceHashes_ = nullptr;
  std::vector<Level> levels_;
};

// A fill and its hash tree, which stay in memory, or on the disk, until the program ends.
template <class Card>
class Fill {
 public:
  Fill(Card& card, const Tables* there, const FillSeed& seed, const Layout& layout)
      : card_(card), layout_(layout),
        memory_(card.template takeStored<uint64_t>(layout.blocks() * kFillWords)), tree_(card, there, layout.leaves(), kLeafBytes) {
    for (size_t slice = 0; slice < kSlices; slice++) {
      card.lanes(layout.lanes, FillSlice{seed, layout, slice, memory_});
    }
    tree_.build(memory_);
    card.store();
  }
  uint64_t leaves() const { return layout_.leaves(); }
  std::vector<uint8_t> leaf(uint64_t index) { return card_.stored(memory_ + index * kLeafBytes / sizeof(uint64_t), kLeafBytes); }
  const Tree<Card>& tree() const { return tree_; }

 private:
  Card& card_;
  Layout layout_;
  uint64_t* memory_;
  Tree<Card> tree_;
};

// Computes products of one size, one after the other in the same memory.
template <class Card>
class Products {
 public:
  Products(Card& card, const Tables& tables, const Tables* there, size_t n)
      : card_(card), tables_(tables), there_(there), n_(n), a_(card.template take<uint8_t>(n * n)),
        b_(card.template take<uint8_t>(n * n)), c_(card.template take<int32_t>(n * n)),
        tree_(card, there, n, n * sizeof(int32_t)) {}

  // Hash tree over the rows of a product, valid until the next product.
  const Tree<Card>& make(const Hash& seed) {
    const size_t blocks = n_ * n_ / kBlock;
    card_.each(blocks, Expand{keyOf(partSeed(tables_, seed, 'A'), tables_), there_, n_, false, a_});
    card_.each(blocks, Expand{keyOf(partSeed(tables_, seed, 'B'), tables_), there_, n_, true, b_});
    card_.multiply(a_, b_, n_, c_);
    tree_.build(c_);
    return tree_;
  }

  size_t size() const { return n_; }
  std::vector<int32_t> row(size_t index) { return card_.get(c_ + index * n_, n_); }

 private:
  Card& card_;
  const Tables& tables_;
  const Tables* there_;
  size_t n_;
  uint8_t *a_, *b_;
  int32_t* c_;
  Tree<Card> tree_;
};

}  // namespace proof
