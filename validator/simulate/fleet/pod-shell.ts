/** A shell in a modelled pod: prints what ordinary tools print, and runs the sections of a hidden rental's program. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { INSPECT_SCRIPT } from '../../inspection/rental-probe/probe-spec.ts';
import { sha256 } from './model-proofs.ts';

const PERIOD = 100_000;
const KIB = 1_024;
/** Part of the host's memory that pods get. */
const MEMORY_SHARE = 0.9;
const BEGIN_S = 1_000;
const RUN_S = 1;

export function printedInPod(inside: Inventory, command: string, script: string): string {
  if (/(?:^|\/| )sh(?: -s?)?$/.test(command)) return ranProgram(inside, script);
  const [, print] = TOOLS.find(([pattern]) => pattern.test(command)) ?? [];
  return print?.(inside, command) ?? '';
}

const quotaOf = ({ cpu }: Inventory) => `${cpu.cores * PERIOD} ${PERIOD}`;
const limitOf = ({ memory }: Inventory) => `${Math.floor(memory.total_kib * MEMORY_SHARE) * KIB}`;

type Print = (inside: Inventory, command: string) => string;

const TOOLS: readonly [RegExp, Print][] = [
  [/nproc|processor/, ({ cpu }) => `${cpu.cores}\n`],
  [/cpu\.max/, (inside) => `${quotaOf(inside)}\n`],
  [/memory\.max/, (inside) => `${limitOf(inside)}\n`],
  [/meminfo/, ({ memory }) => `MemTotal:   ${memory.total_kib} kB\n`],
  [/^free/, ({ memory }) => `       total  used\nMem:   ${memory.total_kib}   1\nSwap:  0  0\n`],
  [
    /^df/,
    ({ disk }) =>
      `Filesystem Size Used Available Use% Mounted on\noverlay ${disk.total_kib} 1 ${disk.free_kib} 1% /\n`,
  ],
  [/^nvidia-smi/, cardsTable],
];

/** Rows in the order of the requested fields. */
function cardsTable({ gpu }: Inventory, command: string): string {
  const [, fields = ''] = /--query-gpu=(\S+)/.exec(command) ?? [];
  const rows = gpu.devices.map((card) => {
    const cells: Record<string, string | number> = {
      name: card.name,
      gpu_name: card.name,
      'memory.total': card.memory_total_mib,
      'memory.used': card.memory_used_mib ?? 0,
      uuid: card.uuid,
      gpu_uuid: card.uuid,
    };
    return fields
      .split(',')
      .map((field) => cells[field])
      .join(', ');
  });
  return `${rows.join('\n')}\n`;
}

function ranProgram(inside: Inventory, script: string): string {
  const workers = Number(/-lt (\d+)/.exec(script)?.[1] ?? 0);
  const busyS = Math.min(workers, inside.cpu.cores) * RUN_S;
  const printed: string[] = [];
  let timesRead = 0;
  for (const line of script.split('\n')) {
    const tag = /^\s*echo (\w+) /.exec(line)?.[1];
    if (tag === undefined) continue;
    if (/\/dev\/zero/.test(line)) printed.push(`${tag} ${bytesIn(line).join(' ')}`);
    else if (line.includes('cpu.max')) printed.push(`${tag} ${quotaOf(inside)}`);
    else if (line.includes('memory.max')) printed.push(`${tag} ${limitOf(inside)}`);
    else if (line.includes('/dev/nvidia')) printed.push(`${tag} ${inside.gpu.devices.length}`);
    else {
      const isEnd = timesRead === 1;
      timesRead += 1;
      printed.push(`${tag} ${BEGIN_S + (isEnd ? RUN_S : 0)}.00`, '0m0.00s 0m0.00s');
      printed.push(`0m${isEnd ? busyS : 0}.00s 0m0.00s`);
    }
  }
  return `${printed.join('\n')}\n`;
}

const bytesIn = (line: string): string[] => [
  ...new Set([...line.matchAll(/head -c (\d+)/g)].map(([, bytes = '']) => bytes)),
];

/** Returns the output of a command of the validator in a pod with the whole host. Throws for other commands. */
export function printedToValidator(command: string, inside: Inventory): string {
  const nonce = /^printf %s '([^']*)' \| sha256sum$/.exec(command)?.[1];
  if (nonce !== undefined) return `${sha256(nonce)}  -\n`;
  if (command !== INSPECT_SCRIPT) throw new Error(`no such command: ${command}`);
  const { cpu, memory, gpu, disk } = inside;
  return [
    `disk=${disk.total_kib}`,
    `names=${gpu.devices.map(({ name }) => name).join(';')}`,
    `cards=${gpu.devices.length}`,
    `seen=MemTotal: ${memory.total_kib} kB`,
    `memory=${memory.total_kib * KIB}`,
    `cpu=${cpu.cores * PERIOD} ${PERIOD}`,
  ].join('\n');
}
