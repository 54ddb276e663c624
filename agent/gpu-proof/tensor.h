// C = A·B of bytes on the tensor cores of a card: exact 32-bit sums, as everywhere.
#pragma once
#include <cuda_pipeline.h>

#include <cstddef>
#include <cstdint>

namespace proof {

// Compute capability (major and minor digit) of code that can use tensor cores for bytes.
constexpr int kTensorVersion = 75;
// Rows and columns of C that a block of threads computes, in four warps of 64 × 64 each.
constexpr int kTensorTile = 128;
constexpr int kTensorThreads = 128;
constexpr int kWarpTile = 64;
// Operands of a step of the hardware: 16 rows of A, 8 columns of B, 32 entries of both.
constexpr int kStepRows = 16, kStepColumns = 8, kStepEntries = 32;
constexpr int kRowSteps = kWarpTile / kStepRows, kColumnSteps = kWarpTile / kStepColumns;
// Entries of each row and column that are copied to shared memory at a time, 16 in each copy; the copy runs some stages
// ahead. The stride avoids conflicts between banks.
constexpr int kStageEntries = 64, kCopy = 16, kStages = 3;
constexpr int kStride = kStageEntries + kCopy;
constexpr int kStageBytes = 2 * kTensorTile * kStride;
// Fits the smallest shared memory of cards with such tensor cores (64 KiB).
constexpr int kTensorSharedBytes = kStages * kStageBytes;
// Rows of tiles whose tiles are computed at about the same time, so that the cache holds their operands.
constexpr size_t kGroup = 8;

// Adds the product of a step to `sums`.
__device__ inline void multiplyStep(int32_t* sums, const uint32_t* a, const uint32_t* b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  // Turing has a quarter of this step: 8 rows and 16 entries.
  for (int part = 0; part < 4; part++) {
    int32_t* quarter = sums + 2 * (part % 2);
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(quarter[0]), "+r"(quarter[1])
        : "r"(a[part]), "r"(b[part / 2]));
  }
#endif
}

// Reads four squares of 8 rows of 16 bytes; each thread names one row, and gets four bytes of each square.
__device__ inline void readSquares(uint32_t* words, const uint8_t* row) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(uint32_t(__cvta_generic_to_shared(row))));
#endif
}

// Multiplies one stage of a warp's tile.
__device__ inline void multiplyStage(const uint8_t* rows, const uint8_t* columns, int32_t (&sums)[kRowSteps][kColumnSteps][4]) {
  const int lane = threadIdx.x % 32, square = lane / 8, line = lane % 8;
  for (int k = 0; k < kStageEntries; k += kStepEntries) {
    uint32_t a[kRowSteps][4], b[kColumnSteps / 2][4];
#pragma unroll
    for (int i = 0; i < kRowSteps; i++) {
      readSquares(a[i], rows + (i * kStepRows + square % 2 * 8 + line) * kStride + k + square / 2 * kCopy);
    }
#pragma unroll
    for (int j = 0; j < kColumnSteps / 2; j++) {
      readSquares(b[j], columns + (j * 2 * kStepColumns + square / 2 * 8 + line) * kStride + k + square % 2 * kCopy);
    }
#pragma unroll
    for (int i = 0; i < kRowSteps; i++) {
#pragma unroll
      for (int j = 0; j < kColumnSteps; j++) multiplyStep(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
    }
  }
}

// Copies one stage of A and B to shared memory; entries beyond the matrices are 0.
__device__ inline void copyStage(const uint8_t* a, const uint8_t* b, size_t n, size_t top, size_t left, size_t k, uint8_t* stage) {
  constexpr int kCopies = kStageEntries / kCopy;
  for (int at = threadIdx.x; at < 2 * kTensorTile * kCopies; at += kTensorThreads) {
    const int line = at / kCopies, entry = at % kCopies * kCopy;
    const bool isRow = line < kTensorTile;
    const size_t index = isRow ? top + line : left + line - kTensorTile;
    const bool isInside = index < n && k + entry < n;
    const uint8_t* from = (isRow ? a : b) + (isInside ? index * n + k + entry : 0);
    __pipeline_memcpy_async(stage + line * kStride + entry, from, kCopy, isInside ? 0 : kCopy);
  }
}

// A by row, B by column, entries below 128. Each block of threads computes one tile.
__global__ void __launch_bounds__(kTensorThreads) tensorProduct(const uint8_t* a, const uint8_t* b, size_t n, int32_t* c) {
  extern __shared__ __align__(kCopy) uint8_t shared[];
  const size_t across = (n + kTensorTile - 1) / kTensorTile;
  const size_t group = blockIdx.x / (kGroup * across), within = blockIdx.x % (kGroup * across);
  const size_t height = across - group * kGroup < kGroup ? across - group * kGroup : kGroup;
  const size_t top = (group * kGroup + within % height) * kTensorTile, left = within / height * kTensorTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warpTop = warp / 2 * kWarpTile, warpLeft = warp % 2 * kWarpTile;
  const int stages = int((n + kStageEntries - 1) / kStageEntries);

  int32_t sums[kRowSteps][kColumnSteps][4] = {};
  for (int ahead = 0; ahead < kStages - 1; ahead++) {
    if (ahead < stages) copyStage(a, b, n, top, left, size_t(ahead) * kStageEntries, shared + ahead * kStageBytes);
    __pipeline_commit();
  }
  for (int at = 0; at < stages; at++) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    const int next = at + kStages - 1;
    if (next < stages) copyStage(a, b, n, top, left, size_t(next) * kStageEntries, shared + next % kStages * kStageBytes);
    __pipeline_commit();
    const uint8_t* rows = shared + at % kStages * kStageBytes;
    multiplyStage(rows + warpTop * kStride, rows + (kTensorTile + warpLeft) * kStride, sums);
  }
#pragma unroll
  for (int i = 0; i < kRowSteps; i++) {
#pragma unroll
    for (int j = 0; j < kColumnSteps; j++) {
      for (int half = 0; half < 2; half++) {
        const size_t row = top + warpTop + i * kStepRows + half * 8 + lane / 4;
        const size_t column = left + warpLeft + j * kStepColumns + lane % 4 * 2;
        if (row >= n || column >= n) continue;
        *reinterpret_cast<int2*>(c + row * n + column) = make_int2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
  }
}

}  // namespace proof
