/** restic, 0.14 or newer, for one repository: the few commands that operations need (agent reference 14). */
import { homedir } from 'node:os';
import type { RepositoryAccess } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunChild } from './bounded-child.ts';
import { OperationFailure } from './operation.state.ts';
import { NO_SEAT, type ResticCgroup } from './restic-cgroup.ts';
import {
  JAIL_FAILED,
  type Jail,
  resticCommand,
  resticEnvironment,
  secretsOf,
} from './restic-command.ts';
import {
  BackupErrorLine,
  BackupLine,
  type BackupStatus,
  type BackupSummary,
  type ListedNode,
  ListLine,
  parseJson,
  problemOf,
  type ResticWork,
  redactLine,
  SnapshotStats,
} from './restic-output.ts';

const MIN_VERSION = { major: 0, minor: 14 };
const ASK_MS = 2 * 60_000;
const WALK_MS = 60 * 60_000;
const TRANSFER_MS = 24 * 60 * 60_000;
/** Another one has the repository to itself: how long, and how often, that is waited for. */
const LOCK_TRIES = 60;
const LOCK_WAIT_MS = 10_000;
const KIB = 1024;
const MAX_ANSWER_CHARS = 256 * 1024;
/** A repository that does not answer, as while its server starts again, is asked anew for so long after the first time. */
const PATIENCE_MS = 60_000;
const UNREACHABLE_WAIT_MS = 2_000;
/** Lines of stderr that go into an operation's log. */
const MAX_SAID_LINES = 10;
/** What can only be a dead process's lock goes. */
const UNLOCK: Call = { args: ['unlock', '--no-cache', '--quiet'], timeoutMs: ASK_MS };
/** restic's exit status of a backup that could not read everything. */
const EXIT_PARTIAL = 3;

export type ResticPorts = {
  clock: Clock;
  runChild: RunChild;
  /** The program's name or path. */
  program: string;
  /** Whether the agent may make mount namespaces; without it there is no jail. */
  isRoot: boolean;
  /** Where there is none, one core. */
  cgroup?: ResticCgroup;
  /** Instead of a minute. */
  patienceMs?: number;
};

/** One operation's talk with its repository. */
export type Talk = {
  access: RepositoryAccess;
  /** Paths as the pod knows them, for lines that are shown: from host to pod. */
  paths: readonly (readonly [string, string])[];
  signal: AbortSignal;
  say(line: string): void;
};

type Call = {
  args: readonly string[];
  timeoutMs: number;
  work?: ResticWork;
  jail?: Jail;
  /** Exit statuses that are no failure beside 0. */
  accepts?: readonly number[];
  onLine?(line: string): void;
  onStart?(pid: number): void;
};

export type Restic = ReturnType<typeof createRestic>;

/** Every call rejects with OperationFailure, or with the signal's reason. */
export function createRestic(ports: ResticPorts) {
  const { clock, runChild, program, isRoot, cgroup, patienceMs = PATIENCE_MS } = ports;
  let isChecked = false;

  /** Which restic there is, once. */
  async function checkVersion(signal: AbortSignal): Promise<void> {
    if (isChecked) return;
    let text = '';
    const onLine = (line: string) => {
      text = line;
    };
    const request = { command: [program, 'version'] as [string, string], environment: {}, signal };
    try {
      await runChild({ ...request, onLine });
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw new OperationFailure('EngineFailed', 'restic is not installed on this host', cause);
    }
    const [, major = '0', minor = '0'] = /^restic (\d+)\.(\d+)/.exec(text) ?? [];
    const isOld = Number(major) === MIN_VERSION.major && Number(minor) < MIN_VERSION.minor;
    if (isOld) throw new OperationFailure('EngineFailed', 'restic on this host is older than 0.14');
    isChecked = true;
  }

  async function once(talk: Talk, call: Call): Promise<'locked' | { exitCode: number | null }> {
    const late = clock.deadline(call.timeoutMs);
    const jail = isRoot ? (call.jail ?? null) : null;
    const cwd = call.jail?.cwd;
    const redact = { secrets: secretsOf(talk.access), paths: talk.paths };
    const { doors, yieldsCpu } = (await cgroup?.enter()) ?? NO_SEAT;
    const { exitCode, errorLines } = await runChild({
      command: resticCommand(program, call.args, jail, doors),
      ...(jail === null && cwd !== undefined ? { cwd } : {}),
      environment: resticEnvironment(talk.access, { home: homedir(), yieldsCpu }),
      onLine: call.onLine ?? (() => undefined),
      ...(call.onStart === undefined ? {} : { onStart: call.onStart }),
      signal: AbortSignal.any([talk.signal, late]),
    })
      .catch((error: unknown) => {
        if (!late.aborted || talk.signal.aborted) throw error;
        throw new OperationFailure('DeadlineExceeded', `restic ${call.args[0]} took too long`);
      })
      .finally(() => cgroup?.leave());
    const lines = errorLines.map((line) => redactLine(plainLine(line), redact));
    const isFine = exitCode === 0 || (exitCode !== null && call.accepts?.includes(exitCode));
    const problem = problemOf(errorLines.join('\n'), call.work);
    if (!isFine && problem === 'locked') return 'locked';
    for (const line of lines.slice(-MAX_SAID_LINES)) talk.say(line);
    if (isFine || problem === 'locked') return { exitCode };
    const message = lines.at(0) ?? `restic ended with ${exitCode ?? 'a signal'}`;
    throw new OperationFailure(exitCode === JAIL_FAILED ? 'EngineFailed' : problem, message);
  }

  /** What restic itself does not try again: it gives up when the first thing that it reads cannot be had. */
  async function patiently(talk: Talk, call: Call): ReturnType<typeof once> {
    const startedMs = clock.monotonicMs();
    for (;;) {
      try {
        return await once(talk, call);
      } catch (error) {
        const isAway = error instanceof OperationFailure && error.code === 'RepositoryUnreachable';
        if (!isAway || clock.monotonicMs() - startedMs >= patienceMs) throw error;
        await clock.sleep(UNREACHABLE_WAIT_MS, talk.signal);
      }
    }
  }

  async function run(talk: Talk, call: Call): Promise<number | null> {
    for (let attempt = 1; attempt <= LOCK_TRIES; attempt += 1) {
      const end = await patiently(talk, call);
      if (end !== 'locked') return end.exitCode;
      if (attempt === 1) {
        await once(talk, UNLOCK);
        continue;
      }
      if (attempt === 2) talk.say('The repository is locked by other work; waiting');
      await clock.sleep(LOCK_WAIT_MS, talk.signal);
    }
    throw new OperationFailure('RepositoryUnreachable', 'The repository stayed locked');
  }

  async function ask(talk: Talk, args: readonly string[], timeoutMs: number): Promise<unknown> {
    let text = '';
    await run(talk, {
      args: [...args, '--no-cache', '--json'],
      timeoutMs,
      onLine: (line) => {
        if (text.length < MAX_ANSWER_CHARS) text += `${line}\n`;
      },
    });
    return parseJson(text);
  }

  return {
    checkVersion,

    /**
     * Finds out whether there is a repository, and makes it where there is none. Locks that nobody can hold any more go
     * on the way, as with `unlock`.
     */
    async make(talk: Talk): Promise<void> {
      await checkVersion(talk.signal);
      try {
        await run({ ...talk, say: () => undefined }, UNLOCK);
      } catch (error) {
        const isMissing = error instanceof OperationFailure && error.code === 'RepositoryMissing';
        if (!isMissing) throw error;
        await run(talk, { args: ['init', '--quiet'], timeoutMs: ASK_MS });
        talk.say('The repository was made');
      }
    },

    /**
     * Takes away locks that nobody can hold any more. restic's own rule is what is wanted: of this host's name with a
     * process that is gone, as after a kill, or not refreshed for half an hour, which a living one does every five
     * minutes.
     */
    unlock: async (talk: Talk): Promise<void> => void (await run(talk, UNLOCK)),

    /** Backs up `name` in the jail's folder. Null summary: restic ended well and told nothing. */
    async backup(
      talk: Talk,
      what: { jail: Jail; name: string; host: string; tag: string },
      onStatus: (status: BackupStatus) => void,
    ): Promise<{ partial: boolean; summary: BackupSummary | null }> {
      let summary: BackupSummary | null = null;
      const exitCode = await run(talk, {
        args: [
          ...['backup', '--json', '--no-cache', '--one-file-system'],
          ...['--host', what.host, '--tag', what.tag, '--', what.name],
        ],
        jail: what.jail,
        timeoutMs: TRANSFER_MS,
        accepts: [EXIT_PARTIAL],
        onLine: (line) => {
          const parsed = BackupLine.safeParse(parseJson(line));
          if (!parsed.success) return;
          if (parsed.data.message_type === 'summary') summary = parsed.data;
          else onStatus(parsed.data);
        },
      });
      return { partial: exitCode === EXIT_PARTIAL, summary };
    },

    /** Reads every directory of the snapshot: one that is damaged rejects with RepositoryCorrupt. */
    async statsOf(talk: Talk, id: string): Promise<SnapshotStats> {
      const args = ['stats', '--mode', 'restore-size', id];
      const stats = SnapshotStats.safeParse(await ask(talk, args, WALK_MS));
      // restic 0.14 counts nothing where there is no such snapshot, and ends well.
      if (stats.data?.total_file_count === 0) {
        throw new OperationFailure('SnapshotMissing', 'The repository has no such snapshot');
      }
      if (stats.success) return stats.data;
      throw new OperationFailure('EngineFailed', 'restic did not tell the size of the snapshot');
    },

    /**
     * The snapshot's full id; tells of every entry where somebody listens. Reads every directory: one that is damaged
     * rejects with RepositoryCorrupt. The repository is not written to, not even a lock.
     */
    async list(
      talk: Talk,
      id: string,
      onNode: ((node: ListedNode) => void) | null,
    ): Promise<string> {
      let found: string | null = null;
      await run(talk, {
        args: ['ls', '--json', '--no-cache', '--no-lock', id],
        timeoutMs: WALK_MS,
        onLine: (text) => {
          if (found !== null && onNode === null) return;
          const line = ListLine.safeParse(parseJson(text)).data;
          if (line?.struct_type === 'snapshot') found = line.id;
          if (line?.struct_type === 'node') onNode?.(line);
        },
      });
      // restic 0.14 lists nothing where there is no such snapshot, and ends well.
      if (found !== null) return found;
      throw new OperationFailure('SnapshotMissing', 'The repository has no such snapshot');
    },

    /** Whether all that belongs to the repository is in it; of its data about `bytes`, by chance, are read. Writes nothing. */
    async check(talk: Talk, bytes: number): Promise<void> {
      const subset = bytes === 0 ? [] : [`--read-data-subset=${Math.ceil(bytes / KIB)}K`];
      const args = ['check', '--no-cache', '--no-lock', ...subset];
      await run(talk, { args, timeoutMs: TRANSFER_MS });
    },

    /** Writes the snapshot below the jail's folder, and reads it back; of `only` these files, and locks nothing. */
    async restore(
      talk: Talk,
      what: {
        jail: Jail;
        id: string;
        target: string;
        only?: readonly string[];
        onStart(pid: number): void;
      },
    ) {
      const only = what.only?.map((path) => `--include=${patternOf(path)}`);
      const chosen = only === undefined ? [] : ['--no-lock', ...only];
      await run(talk, {
        args: ['restore', '--no-cache', '--verify', '--target', what.target, ...chosen, what.id],
        jail: what.jail,
        work: 'restore',
        timeoutMs: TRANSFER_MS,
        onStart: what.onStart,
      });
    },
  };
}

/** The pattern that this path alone matches. */
function patternOf(path: string): string {
  return path.replaceAll(/[\\*?[\]]/g, '\\$&');
}

/** What `backup --json` says of a file that it could not read is JSON in itself. */
function plainLine(line: string): string {
  const parsed = BackupErrorLine.safeParse(parseJson(line));
  if (!parsed.success) return line;
  return `${parsed.data.item}: ${parsed.data.error?.message ?? 'could not be read'}`;
}
