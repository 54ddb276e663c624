/**
 * Program that prints the host's hardware as JSON. It runs in a separate process: systeminformation needs 12
 * MB of memory, which the agent would retain, and starts other programs.
 */
import systeminformation from 'systeminformation';
import type { RawHardware } from './hardware.ts';

const [system, baseboard, bios, cpu, memory, os] = await Promise.all([
  systeminformation.system(),
  systeminformation.baseboard(),
  systeminformation.bios(),
  systeminformation.cpu(),
  systeminformation.memLayout(),
  systeminformation.osInfo(),
]);
const [module] = memory.filter(({ type }) => type !== '' && type !== 'Empty');
const hardware: RawHardware = {
  vendor: system.manufacturer,
  product: system.model,
  board: `${baseboard.manufacturer} ${baseboard.model}`,
  firmware: `${bios.vendor} ${bios.version}`,
  virtual: system.virtual,
  cpuModel: `${cpu.manufacturer} ${cpu.brand}`,
  sockets: cpu.processors,
  physicalCores: cpu.physicalCores,
  memoryType: module?.type ?? '',
  memoryMhz: module?.clockSpeed ?? 0,
  osName: `${os.distro} ${os.release}`,
};
process.stdout.write(JSON.stringify(hardware));
