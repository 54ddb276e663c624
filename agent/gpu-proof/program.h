// Protocol: one line of words on standard input, JSON lines on standard output.
//   commit UUID N ROUNDS SEED BLOCK_BYTES BLOCKS STEPS SEED   -> one object (no memory is filled where BLOCKS is 0)
//   open UUID N {ROUND SEED INDEX,INDEX,...}                  -> one object for each row
// A fault is one object with a code. The arguments `hold SECONDS` keep the container running for that time.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "work.h"

namespace proof {

constexpr size_t kMaxLine = 8192;
constexpr size_t kMinSize = 64, kMaxSize = 16384, kMaxRounds = 16, kMaxRows = 32;
constexpr size_t kMaxBlockBytes = 1 << 20, kMaxSteps = 1000000, kMaxHoldSeconds = 3600;

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

inline std::string base64(const std::vector<int32_t>& row) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(row.data());
  const size_t length = row.size() * sizeof(int32_t);
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

// The words of the input line.
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
  Hash seed() {
    const std::string word = text();
    if (word.size() != 2 * kHash || word.find_first_not_of("0123456789abcdef") != std::string::npos) refuse("no seed");
    Hash hash;
    for (size_t at = 0; at < kHash; at++) hash.bytes[at] = uint8_t(std::stoi(word.substr(2 * at, 2), nullptr, 16));
    return hash;
  }
  size_t size() {
    const size_t n = number(kMinSize, kMaxSize);
    if (n % kBlock != 0) refuse("a size between the steps");
    return n;
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

inline Walk walkIn(Words& words) {
  Walk walk{words.number(0, kMaxBlockBytes), words.number(0, size_t(1) << 40), words.number(0, kMaxSteps)};
  if (walk.blockBytes % kBlock != 0) refuse("a block between the steps");
  if (walk.blocks > 0 && walk.blockBytes == 0) refuse("blocks of nothing");
  return walk;
}

template <class Card>
void commit(Card& card, const Tables& tables, const Tables* there, Words& words) {
  const size_t n = words.size(), rounds = words.number(1, kMaxRounds);
  Hash seed = words.seed();
  const Walk walk = walkIn(words);
  const Hash memorySeed = words.seed();
  words.end();

  Watch filling;
  const size_t bytes = walk.blockBytes * walk.blocks;
  uint8_t* memory = bytes == 0 ? nullptr : card.template take<uint8_t>(bytes);
  if (memory != nullptr) card.each(bytes / kBlock, Fill{keyOf(memorySeed, tables), there, memory});
  const long fillMs = filling.ms();

  // Multiplies while the filled memory stays allocated.
  Watch multiplying;
  Products<Card> products(card, tables, there, n);
  std::string roots;
  for (size_t round = 0; round < rounds; round++) {
    const Hash root = products.make(seed).back().front();
    roots += (round == 0 ? "\"" : ",\"") + hex(root) + '"';
    seed = nextSeed(tables, seed, root);
  }
  std::cout << "{\"roots\":[" << roots << "],\"product_ms\":" << multiplying.ms() << ",\"memory\":";
  if (memory == nullptr) {
    std::cout << "null}\n";
    return;
  }
  Watch walking;
  Hash* end = card.template take<Hash>(1);
  card.each(1, Wander{memorySeed, there, memory, walk, end});
  std::cout << "{\"digest\":\"" << hex(card.get(end, 1)[0]) << "\",\"fill_ms\":" << fillMs
            << ",\"walk_ms\":" << walking.ms() << "}}\n";
}

template <class Card>
void open(Card& card, const Tables& tables, const Tables* there, Words& words) {
  const size_t n = words.size();
  Products<Card> products(card, tables, there, n);
  size_t opened = 0;
  for (std::string word; words.next(word);) {
    const size_t round = Words::numberIn(word, 0, kMaxRounds - 1);
    const Tree tree = products.make(words.seed());
    std::istringstream indices(words.text());
    for (std::string text; std::getline(indices, text, ',');) {
      if (++opened > kMaxRows) refuse("too many rows");
      const size_t index = Words::numberIn(text, 0, n - 1);
      std::string path;
      for (const Hash& hash : pathOf(tree, index)) path += (path.empty() ? "\"" : ",\"") + hex(hash) + '"';
      std::cout << "{\"round\":" << round << ",\"index\":" << index << ",\"sums\":\"" << base64(products.row(index))
                << "\",\"path\":[" << path << "]}\n";
    }
  }
}

// Card: allocates (`take`), writes (`put`) and reads (`get`) memory, and runs a function for each index of a range
// (`each`). The constructor throws if the card has another UUID. The destructor frees the memory.
template <class Card>
int run(int count, char** arguments) {
  try {
    if (count == 3 && std::string(arguments[1]) == "hold") {
      sleep(unsigned(Words::numberIn(arguments[2], 1, kMaxHoldSeconds)));
      return 0;
    }
    if (count != 1) refuse("unknown arguments");
    char line[kMaxLine];
    if (fgets(line, sizeof line, stdin) == nullptr) refuse("nothing was asked");
    Words words(line);
    const std::string what = words.text();
    if (what != "commit" && what != "open") refuse("neither commit nor open");
    Card card(words.text());
    Tables tables;
    makeTables(tables);
    Tables* there = card.template take<Tables>(1);
    card.put(there, tables);
    if (what == "commit") commit(card, tables, there, words);
    else open(card, tables, there, words);
    return 0;
  } catch (const Fault& fault) {
    std::cout << "{\"fault\":" << jsonText(fault.code) << ",\"detail\":" << jsonText(fault.detail) << "}\n";
    return 1;
  }
}

}  // namespace proof
