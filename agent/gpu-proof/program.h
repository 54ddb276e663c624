// Protocol: each line of words on standard input is answered by one line of JSON on standard output.
//   fill LANES LANE_BLOCKS SEED         fills the memory and answers with the root of its hash tree
//   product N ROUNDS SEED               multiplies while the memory is filled and answers with the roots of the products
//   rows {ROUND SEED INDEX,INDEX,...}   opens rows of the products
//   walk NONCE STEPS                    reads leaves of the fill, each at an index given by the one before
//   leaves INDEX,INDEX,...              opens leaves of the fill
// The arguments name the device. A fault is one object with a code and ends the program. The arguments `hold SECONDS` keep
// the container running for that time.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

#include "work.h"

namespace proof {

constexpr size_t kMaxLine = 8192;
constexpr size_t kMinSize = 64, kMaxSize = 16384, kMaxRounds = 256, kMaxRows = 32;
constexpr size_t kMaxBlocks = size_t(1) << 30, kMaxSteps = 16384, kMaxLeaves = 256, kMaxHoldSeconds = 3600;

// Thrown when the work ends early; `code` is one of the fault codes of the agent's API.
struct Fault {
  std::string code, detail;
};

[[noreturn]] inline void refuse(const std::string& detail) { throw Fault{"GPU_PROOF_FAILED", detail}; }

inline std::string hex(const Hash& hash) {
  char text[2 * kHash + 1];
  for (size_t at = 0; at < kHash; at++) snprintf(text + 2 * at, 3, "%02x", hash.bytes[at]);
  return text;
}

inline std::string base64(const uint8_t* bytes, size_t length) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < length; at += 3) {
    const size_t left = length - at;
    const uint32_t three = uint32_t(bytes[at]) << 16 | (left > 1 ? bytes[at + 1] << 8 : 0) | (left > 2 ? bytes[at + 2] : 0);
    for (int digit = 0; digit < 4; digit++) {
      text += size_t(digit) > left ? '=' : digits[three >> (18 - 6 * digit) & 63];
    }
  }
  return text;
}

inline std::string jsonText(const std::string& text) {
  std::string safe = "\"";
  for (char letter : text.substr(0, 500)) safe += letter < ' ' || letter > '~' || letter == '"' || letter == '\\' ? '?' : letter;
  return safe + '"';
}

inline std::string jsonHashes(const std::vector<Hash>& hashes) {
  std::string text;
  for (const Hash& hash : hashes) text += (text.empty() ? "\"" : ",\"") + hex(hash) + '"';
  return '[' + text + ']';
}

// The words of an input line.
class Words {
 public:
  explicit Words(const std::string& line) : stream_(line) {}
  bool next(std::string& word) { return bool(stream_ >> word); }
  std::string text() {
    std::string word;
    if (!next(word)) refuse("too few words");
    return word;
  }
  size_t number(size_t least, size_t most) { return numberIn(text(), least, most); }
  Hash hash() {
    const std::string word = text();
    if (word.size() != 2 * kHash || word.find_first_not_of("0123456789abcdef") != std::string::npos) refuse("no hash");
    Hash hash;
    for (size_t at = 0; at < kHash; at++) hash.bytes[at] = uint8_t(std::stoi(word.substr(2 * at, 2), nullptr, 16));
    return hash;
  }
  // Numbers below `below`, separated by commas.
  std::vector<size_t> indices(size_t most, size_t below) {
    std::istringstream list(text());
    std::vector<size_t> found;
    for (std::string word; std::getline(list, word, ',');) {
      if (found.size() == most) refuse("too many indices");
      found.push_back(numberIn(word, 0, below - 1));
    }
    return found;
  }
  void end() {
    std::string word;
    if (next(word)) refuse("too many words");
  }
  static size_t numberIn(const std::string& word, size_t least, size_t most) {
    if (word.empty() || word.size() > 15 || word.find_first_not_of("0123456789") != std::string::npos) refuse("no number");
    const size_t value = std::stoull(word);
    if (value < least || value > most) refuse("a number out of bounds");
    return value;
  }

 private:
  std::istringstream stream_;
};

class Watch {
 public:
  long ms() const {
    const auto passed = std::chrono::steady_clock::now() - began_;
    return long(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Card: allocates (`take`), writes (`put`) and reads (`get`) memory, and runs a function for each index of a range
// (`each`) or for each lane of a fill (`lanes`). A fill is in memory from `takeStored`; after `store`, `stored` reads it.
// The constructor throws if the device does not exist. The destructor frees the memory.
template <class Card>
class Session {
 public:
  explicit Session(const std::vector<std::string>& device) : card_(device), there_(card_.template take<Tables>(1)) {
    makeTables(tables_);
    card_.put(there_, tables_);
  }
  // Returns the answer to a line.
  std::string answer(const std::string& line) {
    Words words(line);
    const std::string what = words.text();
    if (what == "fill") return fill(words);
    if (what == "product") return product(words);
    if (what == "rows") return rows(words);
    if (what == "walk") return walk(words);
    if (what == "leaves") return leaves(words);
    refuse("an unknown word");
  }

 private:
  std::string fill(Words& words) {
    if (fill_ != nullptr) refuse("the memory is filled already");
    Layout layout;
    layout.lanes = words.number(1, kMaxBlocks);
    layout.laneBlocks = words.number(1, kMaxBlocks / layout.lanes);
    const Hash seed = words.hash();
    words.end();
    if (layout.laneBlocks % (kSlices * kLeafBlocks) != 0) refuse("lanes that end inside a leaf");
    Watch watch;
    fill_ = std::make_unique<Fill<Card>>(card_, there_, fillSeedOf(seed), layout);
    return "{\"root\":\"" + hex(fill_->tree().root()) + "\",\"fill_ms\":" + std::to_string(watch.ms()) + '}';
  }

  std::string product(Words& words) {
    if (products_ != nullptr) refuse("a second product");
    const size_t n = words.number(kMinSize, kMaxSize), rounds = words.number(1, kMaxRounds);
    if (n % kBlock != 0) refuse("a size between the steps");
    Hash seed = words.hash();
    words.end();
    Watch watch;
    products_ = std::make_unique<Products<Card>>(card_, tables_, there_, n);
    std::vector<Hash> roots;
    for (size_t round = 0; round < rounds; round++) {
      roots.push_back(products_->make(seed).root());
      seed = nextSeed(tables_, seed, roots.back());
    }
    return "{\"roots\":" + jsonHashes(roots) + ",\"ms\":" + std::to_string(watch.ms()) + '}';
  }

  std::string rows(Words& words) {
    if (products_ == nullptr) refuse("no product");
    const size_t n = products_->size();
    size_t opened = 0;
    std::string text;
    for (std::string word; words.next(word);) {
      const size_t round = Words::numberIn(word, 0, kMaxRounds - 1);
      const Tree<Card>& tree = products_->make(words.hash());
      for (const size_t index : words.indices(kMaxRows - opened, n)) {
        opened++;
        const std::vector<int32_t> row = products_->row(index);
        text += (text.empty() ? "{\"round\":" : ",{\"round\":") + std::to_string(round) + ",\"index\":" +
                std::to_string(index) + ",\"sums\":\"" +
                base64(reinterpret_cast<const uint8_t*>(row.data()), row.size() * sizeof(int32_t)) +
                "\",\"path\":" + jsonHashes(tree.pathOf(index)) + '}';
      }
    }
    return "{\"rows\":[" + text + "]}";
  }

  std::string walk(Words& words) {
    if (fill_ == nullptr) refuse("no fill");
    const Hash nonce = words.hash();
    const size_t steps = words.number(1, kMaxSteps);
    words.end();
    Watch watch;
    const Hash root = fill_->tree().root();
    Hash state = Sha256(tables_).add(nonce.bytes, kHash).add(root.bytes, kHash).end();
    std::vector<Hash> states;
    for (size_t step = 0; step < steps; step++) {
      uint64_t place = 0;
      for (int at = 0; at < 6; at++) place = place << 8 | state.bytes[at];
      const std::vector<uint8_t> leaf = fill_->leaf(place % fill_->leaves());
      state = Sha256(tables_).add(state.bytes, kHash).add(leaf.data(), leaf.size()).end();
      states.push_back(state);
    }
    return "{\"states\":" + jsonHashes(states) + ",\"walk_ms\":" + std::to_string(watch.ms()) + '}';
  }

  std::string leaves(Words& words) {
    if (fill_ == nullptr) refuse("no fill");
    const std::vector<size_t> indices = words.indices(kMaxLeaves, fill_->leaves());
    words.end();
    std::string text;
    for (const size_t index : indices) {
      const std::vector<uint8_t> leaf = fill_->leaf(index);
      text += (text.empty() ? "{\"index\":" : ",{\"index\":") + std::to_string(index) + ",\"bytes\":\"" +
              base64(leaf.data(), leaf.size()) + "\",\"path\":" + jsonHashes(fill_->tree().pathOf(index)) + '}';
    }
    return "{\"leaves\":[" + text + "]}";
  }

  Card card_;
  Tables tables_;
  Tables* there_;
  std::unique_ptr<Fill<Card>> fill_;
  std::unique_ptr<Products<Card>> products_;
};

template <class Card>
int run(int count, char** arguments) {
  try {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    if (words.size() == 2 && words[0] == "hold") {
      sleep(unsigned(Words::numberIn(words[1], 1, kMaxHoldSeconds)));
      return 0;
    }
    Session<Card> session(words);
    char line[kMaxLine];
    while (fgets(line, sizeof line, stdin) != nullptr) std::cout << session.answer(line) << std::endl;
    return 0;
  } catch (const Fault& fault) {
    std::cout << "{\"fault\":" << jsonText(fault.code) << ",\"detail\":" << jsonText(fault.detail) << "}" << std::endl;
    return 1;
  }
}

}  // namespace proof
