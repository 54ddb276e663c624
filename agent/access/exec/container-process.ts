/** Signals to what runs in a container, sent from the host: only ever to processes of that very container. */
import { readdirSync, readFileSync } from 'node:fs';

/** Signal names of the protocol (RFC 4254 6.10) that are passed on. */
export const SIGNALS = ['HUP', 'INT', 'QUIT', 'TERM', 'KILL', 'USR1', 'USR2', 'ALRM'] as const;
export type SignalName = (typeof SIGNALS)[number];

export type ContainerProcess = { pid: number; containerId: string };

/** What of /proc is needed: processes and their files. */
export type ProcFiles = { list(): string[]; read(path: string): string };

/** This host's. */
export const PROC: ProcFiles = {
  list: () => readdirSync('/proc'),
  read: (path) => readFileSync(`/proc/${path}`, 'utf8'),
};

/** To its process group, as a terminal would. False when it is gone or is not the container's. */
export function signalGroup(target: ContainerProcess, name: SignalName): boolean {
  if (!isInContainer(PROC, target.pid, target.containerId)) return false;
  return send(-target.pid, name);
}

/** To every process of its session, as a terminal that hangs up would. */
export function hangUp(target: ContainerProcess): void {
  for (const pid of membersOfSession(PROC, target)) send(pid, 'HUP');
}

/** The processes of the session that `target` leads, inside its container. */
export function membersOfSession(files: ProcFiles, target: ContainerProcess): number[] {
  return files
    .list()
    .map(Number)
    .filter(
      (pid) =>
        Number.isInteger(pid) &&
        sessionOf(files, pid) === target.pid &&
        isInContainer(files, pid, target.containerId),
    );
}

/** A pid may have passed to somebody else: the cgroup tells whose it is now. */
export function isInContainer(files: ProcFiles, pid: number, containerId: string): boolean {
  if (pid <= 1) return false;
  return containerId !== '' && cgroupOf(files, pid).includes(containerId);
}

/** Empty when it is gone, or hidden. */
export function cgroupOf(files: ProcFiles, pid: number): string {
  return readOrEmpty(files, `${pid}/cgroup`);
}

function sessionOf(files: ProcFiles, pid: number): number {
  return Number(statOf(files, pid)[3]);
}

/** NaN when it is gone. */
export function parentOf(files: ProcFiles, pid: number): number {
  return Number(statOf(files, pid)[1]);
}

/** Fields after the command's name, which may hold blanks and brackets: state, ppid, pgrp, session. */
function statOf(files: ProcFiles, pid: number): string[] {
  const stat = readOrEmpty(files, `${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function readOrEmpty(files: ProcFiles, path: string): string {
  try {
    return files.read(path);
  } catch {
    return '';
  }
}

function send(pid: number, name: SignalName): boolean {
  try {
    return process.kill(pid, `SIG${name}`);
  } catch {
    // Gone meanwhile, or a gateway that is not root.
    return false;
  }
}

// MERGED agent/access/exec/container-process.ts: Whose the processes on a leased card are, by their control groups (validator reference 5, gpu_side_use).
/**
 * How many of `pids` are of another than the container. Null where nobody holds the card or nothing is known; what
 * has just ended, or is hidden from the agent, is nobody's.
 */
export function countOutside(
  files: ProcFiles,
  { pids, containerId }: { pids: readonly number[] | null; containerId: string | null },
): number | null {
  if (pids === null || containerId === null) return null;
  const groups = pids.map((pid) => cgroupOf(files, pid)).filter((group) => group !== '');
  return groups.filter((group) => !group.includes(containerId)).length;
}

// MERGED agent/access/exec/container-process.ts: Shells that an agent or gateway which was killed has left: the engine goes on running them for nobody.
/** Set in every terminal's shell, to the executor's id; inherited by what is started there. */
export const TERMINAL_MARK = 'PODWRIGHT_TERMINAL';
/** Set in every SSH session, to the pod's id; inherited likewise. */
export const SESSION_MARK = 'PODWRIGHT_SESSION';

/** The variable and the value by which a shell is known. */
export type Mark = { name: typeof TERMINAL_MARK | typeof SESSION_MARK; value: string };

/**
 * Hangs up on them, so that they end with what runs in them; what ignores that is its pod's own. For the start
 * only, when there is none that anybody could be using. `containerIds`: those of our running pods. The number
 * of them.
 */
export function hangUpLeftovers(marks: readonly Mark[], containerIds: readonly string[]): number {
  const left = leftShells(PROC, marks, containerIds);
  for (const shell of left) hangUp(shell);
  return left.length;
}

/**
 * Marked processes whose parent is outside of the container: those that the engine was asked to run. What the
 * renter started from a shell and detached has a parent inside.
 */
export function leftShells(
  files: ProcFiles,
  marks: readonly Mark[],
  containerIds: readonly string[],
): ContainerProcess[] {
  const wanted = new Set(marks.map(({ name, value }) => `${name}=${value}`));
  return files
    .list()
    .map(Number)
    .filter(
      (pid) => Number.isInteger(pid) && environmentOf(files, pid).some((each) => wanted.has(each)),
    )
    .flatMap((pid) => {
      const containerId = containerIds.find((id) => isInContainer(files, pid, id));
      const isOurs =
        containerId !== undefined && !isInContainer(files, parentOf(files, pid), containerId);
      return isOurs ? [{ pid, containerId }] : [];
    });
}

function environmentOf(files: ProcFiles, pid: number): string[] {
  try {
    return files.read(`${pid}/environ`).split('\0');
  } catch {
    return [];
  }
}
