/** Judges the agent's folder, its process, the SSH gateway and the programs that they need. Pure. */
import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import type { HomeFacts } from './home.facts.ts';

const OTHERS = 0o077;
const AS_ROOT = 'run the doctor as the agent’s user';
const MAX_COMPLAINTS = 3;

/** `answers`: the agent with our executor id answers at its port. */
export function homeFindings(facts: HomeFacts, answers: boolean): Finding[] {
  return [
    folder(facts),
    agent(facts, answers),
    gateway(facts, answers),
    busybox(facts),
    sftpServer(facts),
  ];
}

function folder({ home, folder: told }: HomeFacts): Finding {
  const id = 'state-folder';
  if ('problem' in told) return unknown(id, `${home} cannot be seen: ${told.problem}`, AS_ROOT);
  if (told.value === null) return ok(id, `${home} is not there yet: the agent makes it`);
  const { mode, writable } = told.value;
  const what = `${home}, mode 0${mode.toString(8)}`;
  if ((mode & OTHERS) !== 0) {
    return warn(id, `${what}: host keys of pods are open to other users`, `chmod 0700 ${home}`);
  }
  if (!writable)
    return fail(id, `${what}: not writable by this user`, `chown -R root ${home}; or ${AS_ROOT}`);
  return ok(id, what);
}

function agent({ holder, home }: HomeFacts, answers: boolean): Finding {
  const id = 'agent';
  if ('problem' in holder) {
    if (answers) return ok(id, 'runs');
    return unknown(id, `whether it runs is not known: ${holder.problem}`, AS_ROOT);
  }
  if (holder.value !== null && answers) return ok(id, `runs as process ${holder.value}`);
  if (holder.value !== null) {
    const remedy = 'read its log; restart it: pods keep running meanwhile';
    return fail(id, `process ${holder.value} has ${home} and does not answer`, remedy);
  }
  if (answers) {
    const what = `it answers, but not from ${home}`;
    return warn(id, what, 'give the doctor the agent’s own AGENT_HOME');
  }
  return warn(id, 'it does not run', 'npm run agent, with the same variables');
}

function gateway({ gateway: told }: HomeFacts, agentRuns: boolean): Finding {
  const id = 'ssh-gateway';
  if ('problem' in told) return unknown(id, `its files cannot be read: ${told.problem}`, AS_ROOT);
  const { pods, pid, alive, complaints } = told.value;
  const start = 'npm run ssh-gateway, with SSH_SNAPSHOT=<AGENT_HOME>/ssh/gateway.json';
  if (!alive) {
    const ended = pid === null ? 'it never reported' : `process ${pid} has ended`;
    const what = `nobody can log in to pods: ${ended}`;
    return agentRuns || (pods ?? 0) > 0 ? fail(id, what, start) : warn(id, what, start);
  }
  if (complaints.length === 0) return ok(id, `process ${pid} serves ${pods ?? 0} pods`);
  const words = complaints.slice(0, MAX_COMPLAINTS).join('; ');
  return warn(id, `${complaints.length} pods let nobody in: ${words}`, 'read its log');
}

function busybox({ busybox: { path, runnable } }: HomeFacts): Finding {
  if (runnable) return ok('busybox', path);
  const what = `${path} is missing: the validator’s probe cannot start`;
  return fail('busybox', what, 'apt install busybox-static; or set AGENT_BUSYBOX');
}

function sftpServer({ sftpServer: path }: HomeFacts): Finding {
  if (path !== null) return ok('sftp-server', path);
  return warn(
    'sftp-server',
    'missing: no SFTP and scp into pods',
    'apt install openssh-sftp-server',
  );
}
