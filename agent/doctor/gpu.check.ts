/** Checks of the GPUs: driver, agreement of bus, module and nvidia-smi, device nodes, container toolkit. */

import { fail, type Outcome, ok, unknown, unread, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { valueOrNull } from '#shared/check/observe.ts';
import type { EngineReport } from '../containers/engine/engine-report.ts';
import type { GpuFacts, GpuTree } from './gpu-facts.ts';

type Card = { uuid: string; name: string; driver: string; address: string; persistent: boolean };
/** `engine` is null if it did not answer. */
type Facts = GpuFacts & { engine: EngineReport | null };

/** Oldest safe version. With older versions, a variable of the container can run code on the host (CVE-2025-23266). */
const SAFE_TOOLKIT = [1, 17, 8];
const NEEDED_NODES = ['nvidiactl', 'nvidia-uvm'];
const DRIVER_REMEDY =
  'install the NVIDIA driver (apt install nvidia-driver, or NVIDIA’s own), then reboot';

const mayHaveGpus = (facts: Facts) =>
  facts.mode !== 'simulated' && facts.mode !== 'none' && !hasNoGpus(facts);
const hasTree = (facts: Facts) => mayHaveGpus(facts) && 'value' in facts.tree;

/** Hosts without GPUs list only `nvidia-driver`. Checks of driver files are listed only where the files can be read. */
export const GPU_CHECKS: readonly DoctorCheck<Facts>[] = [
  {
    id: 'nvidia-driver',
    detects: 'a GPU driver that is missing, hangs or does not match its kernel module',
    required: 'nvidia-smi lists the cards',
    judge: driver,
  },
  {
    id: 'gpu-sources',
    detects: 'a card that fell off the bus or is not bound to the driver',
    required: 'bus, kernel module and nvidia-smi list the same cards',
    applies: mayHaveGpus,
    judge: sources,
  },
  {
    id: 'nvidia-persistence',
    detects: 'launches that wait for the driver to load',
    required: 'persistence mode is on',
    applies: mayHaveGpus,
    judge(facts) {
      const cards = cardsIn(facts);
      const off = cards.filter(({ persistent }) => !persistent).length;
      if (cards.length === 0) return unknown('nvidia-smi lists no GPU');
      if (off === 0) return ok('persistence mode is on');
      const measured = `persistence mode is off on ${off} of ${cards.length}: every launch waits for the driver`;
      return warn(measured, 'systemctl enable --now nvidia-persistenced');
    },
  },
  {
    id: 'nvidia-devices',
    detects: 'missing device nodes',
    required: `/dev has nvidia0, ${NEEDED_NODES.join(', ')}`,
    applies: hasTree,
    judge(facts) {
      const names = (valueOrNull(facts.tree)?.nodes ?? []).map(({ name }) => name);
      const missing = NEEDED_NODES.filter((name) => !names.includes(name));
      if (!names.some((name) => /\d$/.test(name))) missing.unshift('nvidia0');
      if (missing.length === 0) return ok(`/dev has ${names.sort().join(', ')}`);
      const remedy = 'nvidia-modprobe -c 0 -u; and systemctl enable nvidia-persistenced';
      return fail(`/dev lacks ${missing.join(', ')}`, remedy);
    },
  },
  {
    id: 'nvidia-runtime',
    detects: 'an engine that cannot pass GPUs to containers',
    required: 'the toolkit’s hook, the runtime “nvidia” or CDI',
    applies: hasTree,
    judge: runtime,
  },
  {
    id: 'nvidia-toolkit',
    detects: 'a container toolkit through which an image can run code on the host',
    required: `NVIDIA container toolkit ${SAFE_TOOLKIT.join('.')} or newer`,
    applies: hasTree,
    judge: toolkit,
  },
];

/** Returns true if all device nodes have links in /dev/char; null without nodes. */
export function areLinked({ tree }: GpuFacts): boolean | null {
  const nodes = valueOrNull(tree)?.nodes ?? [];
  return nodes.length === 0 ? null : nodes.every(({ linked }) => linked);
}

/** Returns the UUIDs of the cards that nvidia-smi lists. */
export function uuidsIn(facts: GpuFacts): string[] {
  return cardsIn(facts).map(({ uuid }) => uuid);
}

function hasNoGpus(facts: GpuFacts): boolean {
  const tree = valueOrNull(facts.tree);
  if (tree === null || tree.onBus.length > 0 || tree.inModule !== null) return false;
  return cardsIn(facts).length === 0 && findsNoCard(facts);
}

/**
 * Returns true if nvidia-smi is missing or finds no card. A driver that hangs or has mismatched versions implies that a
 * card is present.
 */
function findsNoCard({ smi }: GpuFacts): boolean {
  const output = `${smi.problem ?? ''} ${smi.stdout}`;
  return /could not be started|no devices were found|couldn't communicate/i.test(output);
}

/** Returns true if nvidia-smi did not end in time, so that the cards are unknown. */
function isHung({ smi }: GpuFacts): boolean {
  return /did not end|still hangs/.test(smi.problem ?? '');
}

function driver(facts: Facts): Outcome {
  const { mode, smi } = facts;
  if (mode === 'simulated') {
    return warn('AGENT_GPU=simulated: pods cannot compute', 'set AGENT_GPU=auto');
  }
  if (mode === 'none') return ok('AGENT_GPU=none: no GPUs are offered');
  if (hasNoGpus(facts)) {
    if (mode === 'nvidia') {
      return fail('AGENT_GPU=nvidia, but no NVIDIA GPU is on the bus', 'run: lspci -d 10de:');
    }
    const remedy = 'run: lspci -d 10de: — or set AGENT_GPU=none if that is intended';
    return warn('no NVIDIA GPU is on the bus: none will be offered', remedy);
  }
  const output = `${smi.problem ?? ''} ${smi.stdout}`.trim();
  if (/version mismatch/i.test(output)) {
    const remedy =
      'the driver was upgraded under the kernel module: reboot, or rmmod nvidia_uvm nvidia and modprobe nvidia';
    return fail(`nvidia-smi: ${output}`, remedy);
  }
  if (isHung(facts)) {
    const remedy =
      'repeat the doctor; if the driver hangs, search dmesg for Xid, and reset the card (nvidia-smi -r) or reboot';
    return unread({ problem: output, timedOut: true }, output, remedy);
  }
  const cards = cardsIn(facts);
  if (cards.length > 0 && smi.problem === null) {
    return ok(`driver ${cards[0]?.driver}, ${countByName(cards)}`);
  }
  if (/could not be started/.test(output)) return fail(output, DRIVER_REMEDY);
  const remedy =
    valueOrNull(facts.tree)?.inModule === null
      ? `modprobe nvidia; or ${DRIVER_REMEDY}`
      : 'run: dmesg | grep NVRM';
  return fail(output === '' ? 'nvidia-smi lists no GPU' : output, remedy);
}

function sources(facts: Facts): Outcome {
  if ('problem' in facts.tree) {
    return unread(facts.tree, `the driver’s files cannot be read: ${facts.tree.problem}`);
  }
  if (isHung(facts)) {
    return unread({ problem: '', timedOut: true }, 'nvidia-smi did not list its cards in time');
  }
  const { onBus, inModule } = facts.tree.value;
  const listed = {
    'the bus': onBus.map(addressOf),
    'the kernel module': (inModule ?? []).map(addressOf),
    'nvidia-smi': cardsIn(facts).map(({ address }) => addressOf(address)),
  };
  const all = [...new Set(Object.values(listed).flat())].sort();
  const gaps = Object.entries(listed).flatMap(([source, addresses]) => {
    const missing = all.filter((address) => !addresses.includes(address));
    return missing.length === 0 ? [] : [`${source} lacks ${missing.join(', ')}`];
  });
  if (gaps.length === 0) {
    return ok(`bus, kernel module and nvidia-smi agree on ${all.length} GPUs`);
  }
  const remedy =
    'a card fell off the bus or is not bound to the driver: run dmesg | grep -i xid, reseat the card or reboot';
  return fail(`GPUs differ: ${gaps.join('; ')}`, remedy);
}

/** Checks that the engine can pass GPUs to containers: by the hook on its PATH, the runtime “nvidia” or CDI. */
function runtime({ tree, engine }: Facts): Outcome {
  const { toolkit: programs, cdiSpecs }: Pick<GpuTree, 'toolkit' | 'cdiSpecs'> = valueOrNull(
    tree,
  ) ?? { toolkit: [], cdiSpecs: [] };
  const ways = [
    programs.includes('nvidia-container-runtime-hook') ? 'the toolkit’s hook' : [],
    engine?.runtimes.includes('nvidia') === true ? 'the runtime “nvidia”' : [],
    engine !== null && engine.cdiSpecDirs.length > 0 && cdiSpecs.length > 0 ? 'CDI' : [],
  ].flat();
  if (ways.length > 0) return ok(`Docker passes GPUs by ${ways.join(', ')}`);
  if (engine === null) return unknown('the engine does not answer');
  return fail(
    'Docker cannot pass GPUs to pods: the NVIDIA container toolkit is missing',
    'apt install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; systemctl restart docker while no pod runs',
  );
}

function toolkit({ toolkitVersion }: Facts): Outcome {
  if (toolkitVersion === null) return unknown('the toolkit’s version cannot be read');
  const parts = toolkitVersion.split('.').map(Number);
  const at = SAFE_TOOLKIT.findIndex((safe, index) => parts[index] !== safe);
  const isSafe = at === -1 || (parts[at] ?? 0) > (SAFE_TOOLKIT[at] ?? 0);
  if (isSafe) return ok(`NVIDIA container toolkit ${toolkitVersion}`);
  const safe = SAFE_TOOLKIT.join('.');
  const measured = `toolkit ${toolkitVersion}: an image can run code on this host (CVE-2025-23266)`;
  return fail(measured, `apt install --only-upgrade nvidia-container-toolkit (${safe} or newer)`);
}

function cardsIn({ smi }: GpuFacts): Card[] {
  return smi.stdout.split('\n').flatMap((line) => {
    const [uuid = '', name = '', driver = '', address = '', persistence = ''] = line.split(', ');
    if (!uuid.startsWith('GPU-') || address === '') return [];
    return [{ uuid, name, driver, address, persistent: persistence.trim() === 'Enabled' }];
  });
}

function countByName(cards: readonly Card[]): string {
  const names = Map.groupBy(cards, ({ name }) => name);
  return [...names].map(([name, ofName]) => `${ofName.length} × ${name}`).join(', ');
}

/** Normalises a PCI address: `00000000:3B:00.0` and `0000:3b:00.0` are the same. */
function addressOf(text: string): string {
  const [domain = '', ...rest] = text.trim().toLowerCase().split(':');
  return [Number.parseInt(domain, 16).toString(16).padStart(4, '0'), ...rest].join(':');
}
