/** What the agent measured is what the provider offers: readable, real, of the claimed type and count. */
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import { failed, type Judge, passed } from './check.ts';

/**
 * Of a host that has passed under its present record: a driver may not answer for a moment, and cards may be exchanged
 * a moment before the record is. Whoever has yet to pass learns at once why it does not.
 */
const SEEN_AGAIN = { inARow: 2, isWithholding: true };

export const judgeGpuInventory: Judge = ({ inventory, executor, measured, policy }) => {
  const { gpu, simulated } = inventory;
  const names = gpu.devices.map((device) => device.name);
  const words = names.length === 0 ? 'no GPU' : names.join(', ');
  const passing = measured.accepted === null ? {} : SEEN_AGAIN;
  if (gpu.error !== null) {
    return { ...failed('GPU_UNREADABLE', gpu.error, 'The GPUs cannot be read'), ...passing };
  }
  const isDriven = gpu.driver === 'simulated';
  if (isDriven !== simulated && gpu.driver !== 'none') {
    return failed('GPU_SIMULATED', words, 'The inventory calls its GPUs both real and simulated');
  }
  if (simulated && !policy.acceptSimulated) {
    return failed('GPU_SIMULATED', words, 'The GPUs are simulated');
  }
  if (names.length !== executor.gpu_count) {
    const counts = `${names.length} of ${executor.gpu_count}: ${words}`;
    const message = 'The number of GPUs is not the offered one';
    return { ...failed('GPU_COUNT_MISMATCH', counts, message), ...passing };
  }
  if (new Set(gpu.devices.map((device) => device.uuid)).size !== names.length) {
    return failed('GPU_DUPLICATE', words, 'Two GPUs have one UUID');
  }
  const other = names.find((name) => !matchesGpuType(name, executor.gpu_type));
  if (other === undefined) return passed(words);
  const message = `The offered type is ${executor.gpu_type}`;
  return { ...failed('GPU_MODEL_MISMATCH', other, message), ...passing };
};
