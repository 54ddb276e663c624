/**
 * Plans a measurement into a rented pod: a program whose text differs in each measurement, then ordinary tools in varying
 * order and spelling. The program is first, so that nothing before it shows that the pod is measured. Reads the facts from
 * what they print. Pure.
 */
import type { Random } from '#shared/runtime/random.ts';
import { drawnMs, oneOf, shuffled } from './ordinary-use.ts';
import { MAX_WORKERS, type Offer, Seen } from './seen.ts';

/** Values for the schema of `Seen`, which rejects those that are not plausible. */
type Read = Partial<Record<keyof Seen, unknown>>;

export type Step = {
  command: string;
  /** Sent to the command; empty for none. */
  input: string;
  /** Milliseconds before the command. */
  pauseMs: number;
  read(output: string): Read;
};

export type MeasurementPlan = {
  steps: readonly Step[];
  /** Command that reads all of its input, and the number of bytes that it receives. */
  transfer: { command: string; bytes: number };
};

const PAUSE_MS = [200, 6_000] as const;
const KIB = 1_024;
const MIB = KIB * KIB;

export function planMeasurement(random: Random, offer: Offer): MeasurementPlan {
  const tools = shuffled(random, [...toolsFor(random, offer), ...pastimes(random)]);
  const program = { ...programFor(random, offer), pauseMs: 0 };
  const others = tools.map((tool) => ({ ...tool, pauseMs: drawnMs(random, PAUSE_MS) }));
  return {
    steps: [program, ...others],
    transfer: {
      command: oneOf(random, ['wc -c', 'cat >/dev/null', 'md5sum', 'sha256sum']),
      bytes: MIB / 2 + random.int(2 * MIB),
    },
  };
}

/** Merges what the steps read: of two values the later one that is not null. Values that are not plausible become null. */
export const seenIn = (reads: readonly Read[]): Seen =>
  Seen.parse(
    Object.fromEntries(reads.flatMap(Object.entries).filter(([, value]) => value !== null)),
  );

type Tool = Omit<Step, 'pauseMs'>;

const QUIET = ['', ' 2>/dev/null'] as const;
const CPU_MAX = '/sys/fs/cgroup/cpu.max';
const MEMORY_MAX = '/sys/fs/cgroup/memory.max';
/** The same limits in cgroups v1. */
const CPU_V1 = '/sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us';
const MEMORY_V1 = '/sys/fs/cgroup/memory/memory.limit_in_bytes';

function toolsFor(random: Random, offer: Offer): Tool[] {
  const tool = (spellings: readonly [string, ...string[]], read: Step['read']): Tool => ({
    command: `${oneOf(random, spellings)}${oneOf(random, QUIET)}`,
    input: '',
    read,
  });
  const tools = [
    tool(['nproc', 'nproc --all', 'grep -c ^processor /proc/cpuinfo'], (output) => ({
      processors: integerIn(/^(\d+)$/m, output),
    })),
    tool(limitSpellings(CPU_MAX, CPU_V1), (output) => ({
      quota_cores: quotaIn(output),
    })),
    tool(limitSpellings(MEMORY_MAX, MEMORY_V1), (output) => ({
      limit_kib: kibOf(integerIn(/^(\d+)$/m, output)),
    })),
    tool(['free', 'grep MemTotal /proc/meminfo', 'head -n 3 /proc/meminfo'], (output) => ({
      total_kib: integerIn(/^Mem(?:Total)?: +(\d+)/m, output),
    })),
    tool(['df -k /', 'df -h /', 'df -P -k /', 'df -k'], (output) => ({
      free_disk_kib: diskIn(output),
    })),
  ];
  return offer.cards === null ? tools : [...tools, cardsTool(random)];
}

const limitSpellings = (path: string, older: string): [string, ...string[]] => [
  `cat ${path} || cat ${older}`,
  `cat ${path} 2>/dev/null || cat ${older}`,
  `head -n 1 ${path} || cat ${older}`,
];

/** Fields of nvidia-smi by name in `Seen`. */
const CARD_FIELDS = {
  model: ['name', 'gpu_name'],
  memory_mib: ['memory.total'],
  used_mib: ['memory.used'],
  uuid: ['uuid', 'gpu_uuid'],
} as const;

function cardsTool(random: Random): Tool {
  const names = shuffled(random, ['model', 'memory_mib', 'used_mib', 'uuid'] as const);
  const fields = names.map((name) => oneOf(random, CARD_FIELDS[name])).join(',');
  const format = oneOf(random, ['csv,noheader,nounits', 'csv,nounits,noheader']);
  return {
    command: `nvidia-smi --query-gpu=${fields} --format=${format}`,
    input: '',
    read: (output) => ({
      cards: output
        .split('\n')
        .map((line) => line.split(', '))
        .filter((values) => values.length === names.length)
        .map((values) =>
          Object.fromEntries(names.map((name, at) => [name, cellOf(name, values[at])])),
        ),
    }),
  };
}

const cellOf = (name: keyof typeof CARD_FIELDS, text = ''): string | number =>
  name === 'memory_mib' || name === 'used_mib' ? Number(text) : text.trim();

/** Commands that people type, whose output is ignored. */
function pastimes(random: Random): Tool[] {
  const all = ['ls', 'pwd', 'whoami', 'uname -a', 'hostname', 'date', 'uptime', 'ulimit -a', 'env'];
  const some = shuffled(random, all).slice(0, random.int(4));
  return some.map((command) => ({ command, input: '', read: () => ({}) }));
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** A word that the previous versions of the program do not contain, except by chance. */
function word(random: Random): string {
  const length = 4 + random.int(6);
  return Array.from({ length }, () => LETTERS[random.int(LETTERS.length)]).join('');
}

/** Lines of a section of the program, and what its output states. */
type Section = { lines: string[]; read: Step['read'] };

function programFor(random: Random, offer: Offer): Tool {
  const sections = shuffled(random, [
    busySection(random, offer),
    memorySection(random, offer),
    diskSection(random),
    limitsSection(random),
    ...(offer.cards === null ? [] : [devicesSection(random)]),
  ]);
  const indent = ' '.repeat(random.int(5));
  const text = sections
    .flatMap(({ lines }) => [...lines, ...Array.from({ length: random.int(3) }, () => '')])
    .map((line) => line.replace(/^\t/, indent))
    .join('\n');
  return {
    command: oneOf(random, ['sh', 'sh -s', 'sh -', '/bin/sh', 'exec sh']),
    input: `${text}\nexit 0\n`,
    read: (output) => Object.assign({}, ...sections.map(({ read }) => read(output))),
  };
}

/** Runs programs at once and prints the processor time that they got: `times` prints that of ended children last. */
function busySection(random: Random, { cores }: Offer): Section {
  const [begin, end, at, rest, ids, count] = Array.from({ length: 6 }, () => word(random));
  const workers = Math.max(1, Math.min(cores, MAX_WORKERS));
  const time = (tag: string | undefined) => [
    `read ${at} ${rest} < /proc/uptime`,
    `echo ${tag} $${at}`,
    'times',
  ];
  const read = (output: string): Read => {
    const before = timesAfter(begin ?? '', output);
    const after = timesAfter(end ?? '', output);
    if (before === null || after === null || after.atS <= before.atS) return {};
    return { busy_cores: (after.busyS - before.busyS) / (after.atS - before.atS) };
  };
  const lines = [
    ...time(begin),
    `${ids}=`,
    `${count}=0`,
    `while [ $${count} -lt ${workers} ]; do`,
    '\twhile :; do :; done &',
    `\t${ids}="$${ids} $!"`,
    `\t${count}=$((${count} + 1))`,
    'done',
    `sleep ${1 + random.int(2)}`,
    `kill $${ids} 2>/dev/null`,
    'wait 2>/dev/null',
    ...time(end),
  ];
  return { lines, read };
}

/** Seconds since the start of the host, and seconds of processor time of ended children, printed after a tag. */
function timesAfter(tag: string, output: string): { atS: number; busyS: number } | null {
  const time = String.raw`(\d+)m([\d.]+)s`;
  const pattern = new RegExp(`^${tag} ([\\d.]+)\\n.*\\n${time} ${time}`, 'm');
  const match = pattern.exec(output);
  if (match === null) return null;
  const [, atS, ...times] = match.map(Number);
  const [userMin = 0, userS = 0, systemMin = 0, systemS = 0] = times;
  return { atS: atS ?? 0, busyS: (userMin + systemMin) * 60 + userS + systemS };
}

/** Bytes of the test whether the tools work at all. */
const FEW = 1_000;

/** `tail -c` on a pipe has to keep as many bytes as it prints. */
function memorySection(random: Random, { memoryKib }: Offer): Section {
  const tag = word(random);
  const most = Math.min(64 * MIB, Math.floor((memoryKib * KIB) / 4));
  const bytes = Math.floor(most / 2) + random.int(Math.floor(most / 2) + 1);
  const kept = (count: number) => `head -c ${count} /dev/zero | tail -c ${count} | wc -c`;
  return {
    lines: [`echo ${tag} $(${kept(FEW)}) $(${kept(bytes)})`],
    read: (output) => ({ used_memory: completed(tag, bytes, output) }),
  };
}

function diskSection(random: Random): Section {
  const tag = word(random);
  const file = `/tmp/${word(random)}`;
  const bytes = 4 * MIB + random.int(20 * MIB);
  const written = (count: number) => `head -c ${count} /dev/zero > ${file}; wc -c < ${file}`;
  return {
    lines: [`echo ${tag} $(${written(FEW)}) $(${written(bytes)})`, `rm -f ${file}`],
    read: (output) => ({ wrote_disk: completed(tag, bytes, output) }),
  };
}

/** Returns null if the tools of the image do not even handle a few bytes. */
function completed(tag: string, bytes: number, output: string): boolean | null {
  const counts = new RegExp(`^${tag} +(\\d+)(?: +(\\d+))?`, 'm').exec(output);
  if (counts === null || Number(counts[1]) !== FEW) return null;
  return Number(counts[2] ?? 0) === bytes;
}

function limitsSection(random: Random): Section {
  const [cpu, memory] = [word(random), word(random)];
  return {
    lines: shuffled(random, [
      `echo ${cpu} $(cat ${CPU_MAX} 2>/dev/null || cat ${CPU_V1} 2>/dev/null)`,
      `echo ${memory} $(cat ${MEMORY_MAX} 2>/dev/null || cat ${MEMORY_V1} 2>/dev/null)`,
    ]),
    read: (output) => ({
      quota_cores: quotaIn(lineAfter(cpu, output)),
      limit_kib: kibOf(integerIn(/^(\d+)$/, lineAfter(memory, output))),
    }),
  };
}

function devicesSection(random: Random): Section {
  const tag = word(random);
  return {
    lines: [`echo ${tag} $(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l)`],
    read: (output) => ({ devices: integerIn(/^(\d+)$/, lineAfter(tag, output)) }),
  };
}

const lineAfter = (tag: string, output: string): string =>
  new RegExp(`^${tag} +(.*)$`, 'm').exec(output)?.[1]?.trim() ?? '';

function integerIn(pattern: RegExp, output: string): number | null {
  const digits = pattern.exec(output)?.[1];
  return digits === undefined ? null : Number(digits);
}

const kibOf = (bytes: number | null): number | null =>
  bytes === null ? null : Math.floor(bytes / KIB);

/** Quota and period in microseconds; null without a limit (`max`, or -1 in cgroups v1). */
function quotaIn(output: string): number | null {
  const [, quota, period] = /^(\d+)\s+(\d+)/m.exec(output) ?? [];
  return quota === undefined || period === undefined ? null : Number(quota) / Number(period);
}

const UNITS = ['', 'K', 'M', 'G', 'T', 'P'];

/** Free space of `/` in a table of `df`, in KiB; sizes without a unit are in KiB. */
function diskIn(output: string): number | null {
  const [, size, unit = ''] = /([\d.]+)([KMGTP]?) +\d+% +\/$/m.exec(output) ?? [];
  if (size === undefined) return null;
  const power = unit === '' ? 0 : UNITS.indexOf(unit) - 1;
  return Math.floor(Number(size) * KIB ** power);
}
