/**
 * Load of simulated cards: the values that a card shows while its pod works. They follow the processor use of the pod,
 * because no program computes on the card. Pure.
 */
import type { GpuFigures } from './gpu-driver.ts';

/** Processor use of an idle pod, in cores: its cards are idle too, so that idle shutdown works. */
const IDLE_CORES = 0.1;
/**
 * Processor use with which the cards are fully loaded: one busy core, as in a training program, or all processors of a
 * pod with less.
 */
const FULL_CORES = 1;

const IDLE_TEMPERATURE_C = 30;
const FULL_TEMPERATURE_C = 78;
/** Share of the way to the final temperature that a card takes from one reading to the next. */
const WARMING = 0.3;
const IDLE_POWER_SHARE = 0.1;
const FULL_POWER_SHARE = 0.92;
/** Share of the memory that a loaded card uses at least; a card without memory in use would count as hung. */
const LEAST_MEMORY_SHARE = 0.1;
const FULL_MEMORY_SHARE = 0.85;
/** Clocks of most cards when idle and under load. */
const IDLE_GRAPHICS_MHZ = 210;
const FULL_GRAPHICS_MHZ = 1_980;
const IDLE_MEMORY_MHZ = 405;
const FULL_MEMORY_MHZ = 2_619;
const PERCENT = 100;

/** Returns the load from 0 to 1 of a pod's cards. An unknown processor use (null) counts as idle. */
export function loadOfCores(usedCores: number | null, limitCores: number): number {
  const full = Math.max(2 * IDLE_CORES, Math.min(FULL_CORES, limitCores));
  const above = ((usedCores ?? 0) - IDLE_CORES) / (full - IDLE_CORES);
  return Math.min(1, Math.max(0, above));
}

/**
 * Returns the card's values at the load, 0 to 1. `card` has the values of the last reading, from which the temperature
 * moves gradually. Values that the card does not report remain null.
 */
export function underLoad(card: GpuFigures, load: number): GpuFigures {
  const memoryShare = load === 0 ? 0 : between(LEAST_MEMORY_SHARE, FULL_MEMORY_SHARE, load);
  const limitW = card.power_limit_w;
  const temperature = card.temperature_c;
  const isBusy = load > 0;
  return {
    ...card,
    memory_used_mib: Math.round(card.memory_total_mib * memoryShare),
    utilization_percent: card.utilization_percent === null ? null : Math.round(load * PERCENT),
    temperature_c: temperature === null ? null : warmed(temperature, load),
    power_draw_w: limitW === null ? null : limitW * powerShareOf(load),
    graphics_clock_mhz:
      card.graphics_clock_mhz === null ? null : isBusy ? FULL_GRAPHICS_MHZ : IDLE_GRAPHICS_MHZ,
    memory_clock_mhz:
      card.memory_clock_mhz === null ? null : isBusy ? FULL_MEMORY_MHZ : IDLE_MEMORY_MHZ,
  };
}

/** Values of a card without load. */
export const IDLE = {
  temperatureC: IDLE_TEMPERATURE_C,
  powerShare: IDLE_POWER_SHARE,
  graphicsMhz: IDLE_GRAPHICS_MHZ,
  memoryMhz: IDLE_MEMORY_MHZ,
} as const;

/** Rounded, so that watts have few decimals. */
function powerShareOf(load: number): number {
  return Math.round(between(IDLE_POWER_SHARE, FULL_POWER_SHARE, load) * PERCENT) / PERCENT;
}

/** Moves at least one degree, so that the card reaches the final temperature. */
function warmed(temperature: number, load: number): number {
  const final = Math.round(between(IDLE_TEMPERATURE_C, FULL_TEMPERATURE_C, load));
  const difference = final - temperature;
  const step = Math.max(1, Math.round(Math.abs(difference) * WARMING));
  return temperature + Math.sign(difference) * Math.min(step, Math.abs(difference));
}

function between(idle: number, full: number, load: number): number {
  return idle + (full - idle) * load;
}
