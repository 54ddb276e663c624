/** Runs restic, 0.14 or newer, on one repository: the commands that operations need. */
import { homedir } from 'node:os';
import type { RepositoryAccess } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ChildEnd, RunChild } from './bounded-child.ts';
import { JAIL_FAILED, type Jail } from './jail.ts';
import { OperationFailure } from './operation.state.ts';
import { NO_MEMBERSHIP, type ResticCgroup } from './restic-cgroup.ts';
import { resticCommand, resticEnvironment, secretsOf } from './restic-command.ts';
import {
  BackupErrorLine,
  BackupLine,
  type BackupStatus,
  type BackupSummary,
  explain,
  isRetry,
  isStackLine,
  type ListedNode,
  ListLine,
  parseJson,
  type ResticWork,
  redactLine,
  SnapshotStats,
} from './restic-output.ts';

const MIN_VERSION = { major: 0, minor: 14 };
const QUERY_MS = 2 * 60_000;
const WALK_MS = 60 * 60_000;
const TRANSFER_MS = 24 * 60 * 60_000;
/** Attempts while another process has exclusive access to the repository, and the time between them. */
const LOCK_TRIES = 60;
const LOCK_WAIT_MS = 10_000;
const KIB = 1024;
const MAX_ANSWER_CHARS = 256 * 1024;
/** Time for which requests to an unreachable repository are retried, for example while its server restarts. */
const PATIENCE_MS = 60_000;
const UNREACHABLE_WAIT_MS = 2_000;
/** Lines of stderr that go into an operation's log. */
const MAX_LOGGED_LINES = 10;
/** Removes locks of processes that no longer run. */
const UNLOCK: Call = { args: ['unlock', '--no-cache', '--quiet'], timeoutMs: QUERY_MS };
/** restic's lines for an entry that it could not restore, and at the end of such a restore. */
const IGNORED = /^ignoring error for (.+)$/;
const WITH_ERRORS = /^Fatal: There were \d+ errors/;
/** restic's line when it should read data of a repository that has none. */
const WITHOUT_DATA = /^Fatal: Cannot read from a repository having size 0/;
/** restic's exit status for a backup that could not read all files. */
const EXIT_PARTIAL = 3;

export type ResticPorts = {
  clock: Clock;
  runChild: RunChild;
  /** Name or path of the program. */
  program: string;
  /**
   * True if the agent may create mount namespaces. Otherwise restic runs without a jail and cannot read the layers of
   * containers.
   */
  isRoot: boolean;
  /** Absent: restic runs outside a cgroup and uses one core. */
  cgroup?: ResticCgroup;
  /** Replaces the default of one minute. */
  patienceMs?: number;
};

/** Access of one operation to its repository. */
export type ResticSession = {
  access: RepositoryAccess;
  /** Replacements in displayed lines: from host path to pod path. */
  paths: readonly (readonly [string, string])[];
  signal: AbortSignal;
  appendLog(line: string): void;
  /** Records why restic makes no progress at present, as a sentence for renters. */
  meet(obstacle: string): void;
};

type Call = {
  args: readonly string[];
  timeoutMs: number;
  work?: ResticWork;
  jail?: Jail;
  /** True: the call fails at the first damaged file of the repository, without repeated attempts to read it. */
  endsAtDamage?: boolean;
  /** Returns true for an end other than exit status 0 that is not a failure. */
  accepts?(end: ChildEnd): boolean;
  onLine?(line: string): void;
  onErrorLine?(line: string): void;
  onStart?(pid: number): void;
};

export type Restic = ReturnType<typeof createRestic>;

/** Every call rejects with OperationFailure, or with the signal's reason. */
export function createRestic(ports: ResticPorts) {
  const { clock, runChild, program, isRoot, cgroup, patienceMs = PATIENCE_MS } = ports;
  let isChecked = false;

  /** Checks once that restic is installed and new enough. */
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

  async function once(
    session: ResticSession,
    call: Call,
  ): Promise<'locked' | { exitCode: number | null }> {
    const late = clock.deadline(call.timeoutMs);
    const jail = isRoot ? (call.jail ?? null) : null;
    const cwd = call.jail !== undefined && 'folder' in call.jail ? call.jail.cwd : undefined;
    const redact = { secrets: secretsOf(session.access), paths: session.paths };
    const { procsFiles, yieldsCpu } = (await cgroup?.enter()) ?? NO_MEMBERSHIP;
    const refused = new AbortController();
    let first: string | null = null;
    const onErrorLine = (line: string) => {
      call.onErrorLine?.(line);
      first ??= redactLine(line, redact);
      if (!isRetry(line)) return;
      const { problem, meaning } = explain(line, call.work);
      session.meet(meaning);
      const isDamage = problem === 'RepositoryCorrupt' && call.endsAtDamage === true;
      if (problem !== 'RepositoryAuth' && !isDamage) return;
      // restic would repeat the request for up to a quarter of an hour.
      session.appendLog(first);
      refused.abort(new OperationFailure(problem, isDamage ? `${meaning}: ${first}` : meaning));
    };
    const end = await runChild({
      command: resticCommand(program, call.args, jail, procsFiles),
      ...(jail === null && cwd !== undefined ? { cwd } : {}),
      environment: resticEnvironment(session.access, { home: homedir(), yieldsCpu }),
      onLine: call.onLine ?? (() => undefined),
      onErrorLine,
      ...(call.onStart === undefined ? {} : { onStart: call.onStart }),
      signal: AbortSignal.any([session.signal, late, refused.signal]),
    })
      .catch((error: unknown) => {
        if (!late.aborted || session.signal.aborted) throw error;
        throw new OperationFailure('DeadlineExceeded', `restic ${call.args[0]} took too long`);
      })
      .finally(() => cgroup?.leave());
    const { exitCode } = end;
    const errorLines = end.errorLines.filter((line) => !isStackLine(line));
    const lines = errorLines.map((line) => redactLine(plainLine(line), redact));
    const isFine = exitCode === 0 || call.accepts?.(end) === true;
    const { problem, meaning } = explain(errorLines.join('\n'), call.work);
    if (!isFine && problem === 'locked') return 'locked';
    for (const line of lines.slice(-MAX_LOGGED_LINES)) session.appendLog(line);
    if (isFine || problem === 'locked') return { exitCode };
    const code = exitCode === JAIL_FAILED ? 'EngineFailed' : problem;
    // Adds restic's line only to vague meanings. For every problem, the operation's log has the line.
    const isVague = code === 'EngineFailed' || code === 'RepositoryCorrupt';
    const detail = lines.at(0) ?? `restic ended with ${exitCode ?? 'a signal'}`;
    throw new OperationFailure(code, isVague ? `${meaning}: ${detail}` : meaning);
  }

  /** Retries an unreachable repository: restic itself gives up when its first read fails. */
  async function retryingUnreachable(session: ResticSession, call: Call): ReturnType<typeof once> {
    const startedMs = clock.monotonicMs();
    for (;;) {
      try {
        return await once(session, call);
      } catch (error) {
        const isAway = error instanceof OperationFailure && error.code === 'RepositoryUnreachable';
        if (!isAway || clock.monotonicMs() - startedMs >= patienceMs) throw error;
        session.meet(error.message);
        await clock.sleep(UNREACHABLE_WAIT_MS, session.signal);
      }
    }
  }

  async function run(session: ResticSession, call: Call): Promise<number | null> {
    for (let attempt = 1; attempt <= LOCK_TRIES; attempt += 1) {
      const end = await retryingUnreachable(session, call);
      if (end !== 'locked') return end.exitCode;
      if (attempt === 1) {
        await once(session, UNLOCK);
        continue;
      }
      if (attempt === 2) session.appendLog('The repository is locked by another process; waiting');
      session.meet('Another process uses the storage of this backup');
      await clock.sleep(LOCK_WAIT_MS, session.signal);
    }
    throw new OperationFailure('RepositoryUnreachable', 'The repository stayed locked');
  }

  async function ask(
    session: ResticSession,
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown> {
    let text = '';
    await run(session, {
      args: [...args, '--no-cache', '--no-lock', '--json'],
      timeoutMs,
      onLine: (line) => {
        if (text.length < MAX_ANSWER_CHARS) text += `${line}\n`;
      },
    });
    return parseJson(text);
  }

  return {
    checkVersion,

    /** Creates the repository if it does not exist. Removes stale locks as `unlock` does. */
    async make(session: ResticSession): Promise<void> {
      await checkVersion(session.signal);
      try {
        await run({ ...session, appendLog: () => undefined }, UNLOCK);
      } catch (error) {
        const isMissing = error instanceof OperationFailure && error.code === 'RepositoryMissing';
        if (!isMissing) throw error;
        await run(session, { args: ['init', '--quiet'], timeoutMs: QUERY_MS });
        session.appendLog('The repository was created');
      }
    },

    /**
     * Removes stale locks by restic's rule. A lock is stale if it has this host's name and its process has ended, as
     * after a kill, or if it was not refreshed for half an hour. A running process refreshes its lock every five
     * minutes.
     */
    unlock: async (session: ResticSession): Promise<void> => void (await run(session, UNLOCK)),

    /**
     * Backs up `name` in the jail's working directory. `summary` is null if restic succeeded without a
     * summary.
     */
    async backup(
      session: ResticSession,
      what: { jail: Jail; name: string; host: string; tag: string },
      { onStart, onStatus }: { onStart(pid: number): void; onStatus(status: BackupStatus): void },
    ): Promise<{ partial: boolean; summary: BackupSummary | null }> {
      let summary: BackupSummary | null = null;
      const exitCode = await run(session, {
        args: [
          ...['backup', '--json', '--no-cache'],
          // Nothing is mounted in the tree of a layer jail.
          ...('folder' in what.jail ? ['--one-file-system'] : []),
          ...['--host', what.host, '--tag', what.tag, '--', what.name],
        ],
        jail: what.jail,
        timeoutMs: TRANSFER_MS,
        accepts: ({ exitCode }) => exitCode === EXIT_PARTIAL,
        onStart,
        onLine: (line) => {
          const parsed = BackupLine.safeParse(parseJson(line));
          if (!parsed.success) return;
          if (parsed.data.message_type === 'summary') summary = parsed.data;
          else onStatus(parsed.data);
        },
      });
      return { partial: exitCode === EXIT_PARTIAL, summary };
    },

    /** Returns the size of the snapshot. Reads every directory of it; a damaged one rejects with RepositoryCorrupt. */
    async statsOf(session: ResticSession, id: string): Promise<SnapshotStats> {
      const args = ['stats', '--mode', 'restore-size', id];
      const stats = SnapshotStats.safeParse(await ask(session, args, WALK_MS));
      // For a missing snapshot, restic 0.14 counts no files and exits with 0.
      if (stats.data?.total_file_count === 0) {
        throw new OperationFailure('SnapshotMissing', 'The repository has no such snapshot');
      }
      if (stats.success) return stats.data;
      throw new OperationFailure('EngineFailed', 'restic did not report the size of the snapshot');
    },

    /**
     * Reads every directory of the snapshot, several at a time, because each costs a request to the storage; a damaged one
     * rejects with RepositoryCorrupt.
     */
    async readTrees(session: ResticSession, id: string): Promise<void> {
      await ask(session, ['stats', '--mode', 'raw-data', id], WALK_MS);
    },

    /**
     * Returns the snapshot's full id and reports every entry to `onNode`, or only the entries at and in `paths`. Reads
     * these directories one after the other; a damaged one rejects with RepositoryCorrupt. Writes nothing to the
     * repository, not even a lock.
     */
    async list(
      session: ResticSession,
      id: string,
      onNode: (node: ListedNode) => void,
      paths: readonly string[] = [],
    ): Promise<string> {
      let found: string | null = null;
      await run(session, {
        args: ['ls', '--json', '--no-cache', '--no-lock', id, ...paths],
        timeoutMs: WALK_MS,
        onLine: (text) => {
          const line = ListLine.safeParse(parseJson(text)).data;
          if (line?.struct_type === 'snapshot') found = line.id;
          if (line?.struct_type === 'node') onNode(line);
        },
      });
      // For a missing snapshot, restic 0.14 lists nothing and exits with 0.
      if (found !== null) return found;
      throw new OperationFailure('SnapshotMissing', 'The repository has no such snapshot');
    },

    /**
     * Checks that all objects of the repository exist, and reads about `bytes` of its data, selected at random. Writes
     * nothing.
     */
    async check(session: ResticSession, bytes: number): Promise<void> {
      const subset = bytes === 0 ? [] : [`--read-data-subset=${Math.ceil(bytes / KIB)}K`];
      const args = ['check', '--no-cache', '--no-lock', ...subset];
      await run(session, {
        args,
        timeoutMs: TRANSFER_MS,
        endsAtDamage: true,
        accepts: ({ errorLines: [line = '', ...more] }) =>
          WITHOUT_DATA.test(line) && more.length === 0,
      });
    },

    /**
     * Restores the snapshot, or only the files in `only`, below the jail's folder and verifies the files. Takes no lock,
     * so that the storage may be read-only. With `onLost`, reports every entry that is damaged in the repository, as
     * `PATH: ERROR`, and restores the others.
     */
    async restore(
      session: ResticSession,
      what: {
        jail: Jail;
        id: string;
        target: string;
        only?: readonly string[];
        onLost?(text: string): void;
        onStart(pid: number): void;
      },
    ) {
      const { onLost, only = [] } = what;
      const chosen = only.map((path) => `--include=${patternOf(path)}`);
      let [isDamaged, isFull] = [false, false];
      await run(session, {
        args: [
          ...['restore', '--no-cache', '--no-lock', '--verify'],
          ...['--target', what.target, ...chosen, what.id],
        ],
        jail: what.jail,
        work: 'restore',
        timeoutMs: TRANSFER_MS,
        onStart: what.onStart,
        accepts: ({ errorLines }) =>
          onLost !== undefined &&
          isDamaged &&
          !isFull &&
          errorLines.some((line) => WITH_ERRORS.test(line)),
        onErrorLine(line) {
          const text = IGNORED.exec(line)?.[1];
          if (text === undefined) return;
          const { problem } = explain(line, 'restore');
          isDamaged ||= problem === 'RepositoryCorrupt';
          isFull ||= problem === 'NoSpace';
          onLost?.(text);
        },
      });
    },
  };
}

/** Returns a pattern that matches only this path. */
function patternOf(path: string): string {
  return path.replaceAll(/[\\*?[\]]/g, '\\$&');
}

/** Unwraps an unreadable file's error, which `backup --json` reports as JSON within JSON. */
function plainLine(line: string): string {
  const parsed = BackupErrorLine.safeParse(parseJson(line));
  if (!parsed.success) return line;
  return `${parsed.data.item}: ${parsed.data.error?.message ?? 'could not be read'}`;
}
