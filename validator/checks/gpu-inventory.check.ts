/** What the agent measured is what the provider offers: readable, real, of the claimed type and count. */
import { matchesGpuType } from '#shared/gpu-type.ts';
import type { Check, Outcome } from './check.ts';

export const gpuInventoryCheck: Check = {
  id: 'gpu_inventory',
  required: 'GPUs readable, distinct, of the offered type and count',
  judge({ inventory, executor, policy }) {
    if (inventory === null) return { status: 'unknown', measured: 'no inventory' };
    const { gpu, simulated } = inventory;
    const names = gpu.devices.map((device) => device.name);
    const measured = names.length === 0 ? 'no GPU' : names.join(', ');
    if (gpu.error !== null) {
      return failed(
        'GPU_UNREADABLE',
        gpu.error,
        'The GPUs cannot be read',
        'Reboot, or reinstall the driver.',
      );
    }
    if (simulated && !policy.acceptSimulated) {
      return failed(
        'GPU_SIMULATED',
        measured,
        'The GPUs are simulated',
        'Start the agent with AGENT_GPU=nvidia.',
      );
    }
    if (names.length !== executor.gpu_count) {
      return failed(
        'GPU_COUNT_MISMATCH',
        `${names.length} of ${executor.gpu_count}: ${measured}`,
        'The number of GPUs is not the offered one',
        'Correct the record in the portal, or reseat the missing card.',
      );
    }
    if (new Set(gpu.devices.map((device) => device.uuid)).size !== names.length) {
      return failed('GPU_DUPLICATE', measured, 'Two GPUs have one UUID', 'Reinstall the driver.');
    }
    const other = names.find((name) => !matchesGpuType(name, executor.gpu_type));
    if (other !== undefined) {
      return failed(
        'GPU_MODEL_MISMATCH',
        other,
        `The offered type is ${executor.gpu_type}`,
        'Correct the GPU type in the portal.',
      );
    }
    return { status: 'passed', measured };
  },
};

function failed(
  reasonCode: string,
  measured: string,
  message: string,
  remediation: string,
): Outcome {
  return { status: 'failed', reasonCode, measured, message, remediation };
}
