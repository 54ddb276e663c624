/** Processes of containers, found and signalled from the host through /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Signals that clients may send (RFC 4254, 6.10). */
export const SIGNALS = ['HUP', 'INT', 'QUIT', 'TERM', 'KILL', 'USR1', 'USR2', 'ALRM'] as const;
export type SignalName = (typeof SIGNALS)[number];

export type ContainerProcess = { pid: number; containerId: string };

/** Access to /proc. */
export type ProcFiles = { list(): string[]; read(path: string): string };

/** /proc of this host. */
export const PROC: ProcFiles = {
  list: () => readdirSync('/proc'),
  read: (path) => readFileSync(`/proc/${path}`, 'utf8'),
};

/** Signals the process group, as a terminal does. Returns false if the process has ended or is not in the container. */
export function signalGroup(target: ContainerProcess, name: SignalName): boolean {
  if (!isInContainer(PROC, target.pid, target.containerId)) return false;
  return send(-target.pid, name);
}

/** Sends SIGHUP to every process of the session, as the kernel does when a terminal hangs up. */
export function hangUp(target: ContainerProcess): void {
  for (const pid of membersOfSession(PROC, target)) send(pid, 'HUP');
}

/** Returns the processes of the session that `target` leads, inside its container. */
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

/** Returns true if the process is in the container. Checks the cgroup, because the pid may have been reused. */
export function isInContainer(files: ProcFiles, pid: number, containerId: string): boolean {
  if (pid <= 1) return false;
  return containerId !== '' && cgroupOf(files, pid).includes(containerId);
}

/** Returns the text of `/proc/PID/cgroup`; empty if the process has ended or is hidden. */
export function cgroupOf(files: ProcFiles, pid: number): string {
  return readOrEmpty(files, `${pid}/cgroup`);
}

function sessionOf(files: ProcFiles, pid: number): number {
  return Number(statOf(files, pid)[3]);
}

/** Returns the pid of the parent; NaN if the process has ended. */
export function parentOf(files: ProcFiles, pid: number): number {
  return Number(statOf(files, pid)[1]);
}

/** Fields after the command name, which may contain blanks and brackets: state, ppid, pgrp, session. */
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
    // The process has ended, or the gateway does not run as root.
    return false;
  }
}

/** Returns the processes whose program (`/proc/PID/comm`, at most 15 characters) has one of the names. */
export function withNames(
  files: ProcFiles,
  pids: readonly number[],
  names: readonly string[],
): number[] {
  if (names.length === 0) return [];
  return pids.filter((pid) => names.includes(readOrEmpty(files, `${pid}/comm`).trimEnd()));
}

/**
 * Counts the compute processes on a leased card that do not belong to its pod's container. Null if the card is not
 * leased or the processes are unknown. Processes that have ended or are hidden from the agent do not count.
 */
export function countOutside(
  files: ProcFiles,
  { pids, containerId }: { pids: readonly number[] | null; containerId: string | null },
): number | null {
  if (pids === null || containerId === null) return null;
  const groups = pids.map((pid) => cgroupOf(files, pid)).filter((group) => group !== '');
  return groups.filter((group) => !group.includes(containerId)).length;
}

/** Environment variable of every terminal's shell: the executor id. Child processes inherit it. */
export const TERMINAL_MARK = 'PODWRIGHT_TERMINAL';
/** Environment variable of every SSH session: the pod id. Child processes inherit it. */
export const SESSION_MARK = 'PODWRIGHT_SESSION';

/** Variable and value that identify a shell. */
export type Mark = { name: typeof TERMINAL_MARK | typeof SESSION_MARK; value: string };

/**
 * Sends SIGHUP to shells that a killed agent or gateway left behind; the engine keeps them running without a client.
 * Processes that ignore SIGHUP keep running in the pod. Call it only at the start, before any session is opened.
 * `containerIds`: the running pods of this agent. Returns the number of shells.
 */
export function hangUpLeftovers(marks: readonly Mark[], containerIds: readonly string[]): number {
  const shells = leftShells(PROC, marks, containerIds);
  for (const shell of shells) hangUp(shell);
  return shells.length;
}

/**
 * Returns marked processes whose parent is outside the container: those that the engine started. Processes that
 * the renter detached from a shell have a parent inside.
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
