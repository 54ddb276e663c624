/** Judges what was seen of the GPUs: driver, agreement of the three sources, nodes, toolkit (agent reference 9). Pure. */

import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import { known } from '#shared/check/told.ts';
import type { EngineReport } from '../containers/engine/engine-report.ts';
import type { GpuFacts, GpuTree } from './gpu.facts.ts';

type Card = { uuid: string; name: string; driver: string; address: string; persistent: boolean };

/** Before it, a variable of the container's environment could run code on the host (CVE-2025-23266). */
const SAFE_TOOLKIT = [1, 17, 8];
const NEEDED_NODES = ['nvidiactl', 'nvidia-uvm'];
const DRIVER_REMEDY =
  'install the NVIDIA driver (apt install nvidia-driver, or NVIDIA’s own), then reboot';

/** `engine` is null when it did not answer. */
export function gpuFindings(facts: GpuFacts, engine: EngineReport | null): Finding[] {
  if (facts.mode === 'simulated') {
    return [
      warn('nvidia-driver', 'AGENT_GPU=simulated: nothing computes here', 'set AGENT_GPU=auto'),
    ];
  }
  if (facts.mode === 'none') return [ok('nvidia-driver', 'AGENT_GPU=none: no GPUs are offered')];
  const cards = cardsIn(facts.smi.stdout);
  if ('problem' in facts.tree) {
    const why = `the driver’s files do not answer: ${facts.tree.problem}`;
    return [driver(facts, null, cards), unknown('gpu-sources', why), persistence(cards)];
  }
  const tree = facts.tree.value;
  const isBare =
    tree.onBus.length === 0 && tree.inModule === null && cards.length === 0 && isQuiet(facts);
  if (isBare) return [withoutGpus(facts)];
  return [
    driver(facts, tree, cards),
    sources(tree, cards),
    persistence(cards),
    nodes(tree),
    runtime(tree, engine),
    toolkit(facts),
  ];
}

/** Whether all device nodes have their links in /dev/char; null when there are no nodes. */
export function areLinked({ tree }: GpuFacts): boolean | null {
  const nodes = known(tree)?.nodes ?? [];
  return nodes.length === 0 ? null : nodes.every(({ linked }) => linked);
}

/** UUIDs of the cards that nvidia-smi shows. */
export function uuidsSeen({ smi }: GpuFacts): string[] {
  return cardsIn(smi.stdout).map(({ uuid }) => uuid);
}

/** A program that is missing or finds no card is quiet; one that hangs or mismatches tells of a card. */
function isQuiet({ smi }: GpuFacts): boolean {
  const words = `${smi.problem ?? ''} ${smi.stdout}`;
  return /could not be started|no devices were found|couldn't communicate/i.test(words);
}

function withoutGpus({ mode }: GpuFacts): Finding {
  if (mode === 'nvidia') {
    return fail(
      'nvidia-driver',
      'AGENT_GPU=nvidia, and no NVIDIA GPU is on the bus',
      'look at: lspci -d 10de:',
    );
  }
  const remedy = 'look at: lspci -d 10de: — or set AGENT_GPU=none where that is meant';
  return warn('nvidia-driver', 'no NVIDIA GPU is on the bus: none will be offered', remedy);
}

function driver({ smi }: GpuFacts, tree: GpuTree | null, cards: readonly Card[]): Finding {
  const words = `${smi.problem ?? ''} ${smi.stdout}`.trim();
  if (/version mismatch/i.test(words)) {
    const remedy =
      'the driver was upgraded under the kernel module: reboot, or rmmod nvidia_uvm nvidia and modprobe nvidia';
    return fail('nvidia-driver', `nvidia-smi: ${words}`, remedy);
  }
  if (/did not end|still hangs/.test(words)) {
    const remedy =
      'the driver hangs: look for Xid in dmesg; reset the card (nvidia-smi -r) or reboot';
    return fail('nvidia-driver', words, remedy);
  }
  if (cards.length > 0 && smi.problem === null) {
    return ok('nvidia-driver', `driver ${cards[0]?.driver}, ${countByName(cards)}`);
  }
  if (/could not be started/.test(words)) return fail('nvidia-driver', words, DRIVER_REMEDY);
  const remedy =
    tree?.inModule === null ? `modprobe nvidia; or ${DRIVER_REMEDY}` : 'look at: dmesg | grep NVRM';
  return fail('nvidia-driver', words === '' ? 'nvidia-smi shows no GPU' : words, remedy);
}

function sources({ onBus, inModule }: GpuTree, cards: readonly Card[]): Finding {
  const seen = {
    'the bus': onBus.map(addressOf),
    'the kernel module': (inModule ?? []).map(addressOf),
    'nvidia-smi': cards.map(({ address }) => addressOf(address)),
  };
  const all = [...new Set(Object.values(seen).flat())].sort();
  const gaps = Object.entries(seen).flatMap(([source, addresses]) => {
    const missing = all.filter((address) => !addresses.includes(address));
    return missing.length === 0 ? [] : [`${source} lacks ${missing.join(', ')}`];
  });
  if (gaps.length === 0) {
    return ok('gpu-sources', `bus, kernel module and nvidia-smi agree on ${all.length} GPUs`);
  }
  const remedy =
    'a card fell off the bus or is not driven: look at dmesg | grep -i xid, reseat or reboot';
  return fail('gpu-sources', `GPUs differ: ${gaps.join('; ')}`, remedy);
}

function persistence(cards: readonly Card[]): Finding {
  const off = cards.filter(({ persistent }) => !persistent).length;
  if (cards.length === 0)
    return unknown('nvidia-persistence', 'not known: nvidia-smi shows no GPU');
  if (off === 0) return ok('nvidia-persistence', 'persistence mode is on');
  const what = `persistence mode is off on ${off} of ${cards.length}: every launch waits for the driver`;
  return warn('nvidia-persistence', what, 'systemctl enable --now nvidia-persistenced');
}

function nodes({ nodes: found }: GpuTree): Finding {
  const names = found.map(({ name }) => name);
  const missing = NEEDED_NODES.filter((name) => !names.includes(name));
  if (!names.some((name) => /\d$/.test(name))) missing.unshift('nvidia0');
  if (missing.length === 0) return ok('nvidia-devices', `/dev has ${names.sort().join(', ')}`);
  const what = `/dev lacks ${missing.join(', ')}`;
  return fail(
    'nvidia-devices',
    what,
    'nvidia-modprobe -c 0 -u; and systemctl enable nvidia-persistenced',
  );
}

/** What lets an engine hand GPUs to containers: the hook on its PATH, its own runtime, or CDI. */
function runtime({ toolkit: programs, cdiSpecs }: GpuTree, engine: EngineReport | null): Finding {
  const ways = [
    programs.includes('nvidia-container-runtime-hook') ? 'the toolkit’s hook' : [],
    engine?.runtimes.includes('nvidia') === true ? 'the runtime “nvidia”' : [],
    engine !== null && engine.cdiSpecDirs.length > 0 && cdiSpecs.length > 0 ? 'CDI' : [],
  ].flat();
  if (ways.length > 0) return ok('nvidia-runtime', `Docker reaches GPUs by ${ways.join(', ')}`);
  return fail(
    'nvidia-runtime',
    'Docker cannot hand GPUs to pods: the NVIDIA container toolkit is missing',
    'apt install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; systemctl restart docker while no pod runs',
  );
}

function toolkit({ toolkitVersion }: GpuFacts): Finding {
  const id = 'nvidia-toolkit';
  if (toolkitVersion === null) return unknown(id, 'the toolkit’s version cannot be told', null);
  const parts = toolkitVersion.split('.').map(Number);
  const at = SAFE_TOOLKIT.findIndex((wanted, index) => parts[index] !== wanted);
  const isSafe = at === -1 || (parts[at] ?? 0) > (SAFE_TOOLKIT[at] ?? 0);
  if (isSafe) return ok(id, `NVIDIA container toolkit ${toolkitVersion}`);
  const safe = SAFE_TOOLKIT.join('.');
  const what = `toolkit ${toolkitVersion}: an image can run code on this host (CVE-2025-23266)`;
  return fail(id, what, `apt install --only-upgrade nvidia-container-toolkit (${safe} or newer)`);
}

function cardsIn(stdout: string): Card[] {
  return stdout.split('\n').flatMap((line) => {
    const [uuid = '', name = '', driver = '', address = '', persistence = ''] = line.split(', ');
    if (!uuid.startsWith('GPU-') || address === '') return [];
    return [{ uuid, name, driver, address, persistent: persistence.trim() === 'Enabled' }];
  });
}

function countByName(cards: readonly Card[]): string {
  const names = Map.groupBy(cards, ({ name }) => name);
  return [...names].map(([name, ofName]) => `${ofName.length} × ${name}`).join(', ');
}

/** `00000000:3B:00.0` and `0000:3b:00.0` are one address. */
function addressOf(text: string): string {
  const [domain = '', ...rest] = text.trim().toLowerCase().split(':');
  return [Number.parseInt(domain, 16).toString(16).padStart(4, '0'), ...rest].join(':');
}
