/** What the agent measured is what the provider offers: readable, real, of the claimed type and count. */
import { matchesGpuType } from '#shared/gpu-type.ts';
import { failed, type Judge, passed } from './check.ts';

export const judgeGpuInventory: Judge = ({ inventory, executor, policy }) => {
  const { gpu, simulated } = inventory;
  const names = gpu.devices.map((device) => device.name);
  const measured = names.length === 0 ? 'no GPU' : names.join(', ');
  if (gpu.error !== null) return failed('GPU_UNREADABLE', gpu.error, 'The GPUs cannot be read');
  const isDriven = gpu.driver === 'simulated';
  if (isDriven !== simulated && gpu.driver !== 'none') {
    return failed(
      'GPU_SIMULATED',
      measured,
      'The inventory calls its GPUs both real and simulated',
    );
  }
  if (simulated && !policy.acceptSimulated) {
    return failed('GPU_SIMULATED', measured, 'The GPUs are simulated');
  }
  if (names.length !== executor.gpu_count) {
    const counts = `${names.length} of ${executor.gpu_count}: ${measured}`;
    return failed('GPU_COUNT_MISMATCH', counts, 'The number of GPUs is not the offered one');
  }
  if (new Set(gpu.devices.map((device) => device.uuid)).size !== names.length) {
    return failed('GPU_DUPLICATE', measured, 'Two GPUs have one UUID');
  }
  const other = names.find((name) => !matchesGpuType(name, executor.gpu_type));
  if (other === undefined) return passed(measured);
  return failed('GPU_MODEL_MISMATCH', other, `The offered type is ${executor.gpu_type}`);
};
