/** Facts about NVIDIA GPUs on the host: driver, bus, device nodes, container toolkit. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Observed, observe } from '#shared/check/observe.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import type { GpuMode } from '../gpu/choose-gpu-driver.ts';
import type { NvidiaSmi, SmiOutput } from '../gpu/nvidia/nvidia-smi.ts';
import { nvidiaCardsOnBus } from '../gpu/pci-bus.ts';

export type GpuFacts = {
  mode: GpuMode;
  smi: SmiOutput;
  tree: Observed<GpuTree>;
  /** Version of the container toolkit; null if it cannot be read. */
  toolkitVersion: string | null;
};

/** Read from /sys, /proc and /dev. */
export type GpuTree = {
  /** PCI addresses of NVIDIA display controllers on the bus. */
  onBus: readonly string[];
  /** PCI addresses that the kernel module drives; null if it is not loaded. */
  inModule: readonly string[] | null;
  nodes: readonly { name: string; linked: boolean }[];
  /** Programs of the container toolkit on PATH. */
  toolkit: readonly string[];
  /** File names of NVIDIA CDI specifications. */
  cdiSpecs: readonly string[];
};

export const SMI_ARGS = [
  '--query-gpu=uuid,name,driver_version,pci.bus_id,persistence_mode',
  '--format=csv,noheader',
];
export const TOOLKIT_PROGRAMS = [
  'nvidia-container-runtime',
  'nvidia-container-runtime-hook',
  'nvidia-ctk',
] as const;

const VERSION_BOUNDS = { timeoutMs: 3_000, maxOutputBytes: 10_000 };
const CDI_FOLDERS = ['etc/cdi', 'var/run/cdi'];

/** Deadline in milliseconds: reading the files of a hung driver may block. */
const TREE_MS = 4_000;

/** `root` is `/`, or a folder with the same tree in tests. Missing folders are facts, not errors. */
export async function readGpuFacts(options: {
  clock: Clock;
  mode: GpuMode;
  smi: NvidiaSmi;
  runCommand: RunCommand;
  path: string;
  root: string;
}): Promise<GpuFacts> {
  const { clock, mode, path, root } = options;
  const [smi, tree, toolkitVersion] = await Promise.all([
    options.smi.run(SMI_ARGS),
    observe(clock, TREE_MS, () => readTree(root, path)),
    readToolkitVersion(options.runCommand),
  ]);
  return { mode, smi, tree, toolkitVersion };
}

async function readTree(root: string, path: string): Promise<GpuTree> {
  const [onBus, inModule, nodes, toolkit, cdi] = await Promise.all([
    readBus(root),
    namesIn(join(root, 'proc/driver/nvidia/gpus')),
    readNodes(root),
    programsOn(path, TOOLKIT_PROGRAMS),
    Promise.all(CDI_FOLDERS.map((folder) => namesIn(join(root, folder)))),
  ]);
  const cdiSpecs = cdi.flatMap((names) => names ?? []).filter((name) => /nvidia/i.test(name));
  return { onBus, inModule, nodes, toolkit, cdiSpecs };
}

/** A host without a PCI bus has no cards on it. */
async function readBus(root: string): Promise<string[]> {
  const cards = await nvidiaCardsOnBus(join(root, 'sys/bus/pci/devices')).catch(() => []);
  return cards.map(({ address }) => address);
}

async function readNodes(root: string): Promise<GpuTree['nodes']> {
  const names = (await namesIn(join(root, 'dev'))) ?? [];
  const nodes = names.filter((name) => /^nvidia(?:\d+|ctl|-uvm)$/.test(name));
  return Promise.all(
    nodes.map(async (name) => {
      const { rdev } = await stat(join(root, 'dev', name));
      const link = `${majorOf(rdev)}:${minorOf(rdev)}`;
      const linked = await stat(join(root, 'dev/char', link)).then(
        () => true,
        () => false,
      );
      return { name, linked };
    }),
  );
}

async function readToolkitVersion(runCommand: RunCommand): Promise<string | null> {
  const run = await runCommand('nvidia-ctk', ['--version'], VERSION_BOUNDS).catch(() => null);
  return /version v?(\d+\.\d+\.\d+)/i.exec(run?.stdout ?? '')?.[1] ?? null;
}

/** Returns the programs that exist in a folder of `path`. */
async function programsOn(path: string, programs: readonly string[]): Promise<string[]> {
  const folders = path.split(':').filter((folder) => folder !== '');
  const found = await Promise.all(
    programs.map(async (program) => {
      const tries = folders.map((folder) => stat(join(folder, program)));
      return Promise.any(tries).then(
        () => true,
        () => false,
      );
    }),
  );
  return programs.filter((_, index) => found[index]);
}

/** Decodes the major number from Linux's 32-bit encoding of device numbers. */
function majorOf(device: number): number {
  return (device >> 8) & 0xfff;
}

function minorOf(device: number): number {
  return (device & 0xff) | ((device >> 12) & 0xfff00);
}

async function namesIn(folder: string): Promise<string[] | null> {
  return readdir(folder).catch(() => null);
}
