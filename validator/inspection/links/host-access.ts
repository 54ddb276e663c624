/** The validator's access to agents and hosts: a port, because a simulation has models of both. */
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { AgentIdentity } from '../../checks/check.ts';
import type { ReadPort } from '../port-check.ts';
import { readPort } from '../port-check.ts';
import { createVerifier, type Verifier } from '../proof/verifier.ts';
import { createSshLogin, readBanner, type SshLogin } from '../rental-probe/ssh-session.ts';
import { createRunInPod, type RunInPod } from '../reports/pod-terminal.ts';
import { type AgentLinks, type AgentLinksOptions, createAgentLinks } from './agent-links.ts';

export type HostAccess = Omit<AgentLinks, 'identityOf'> & {
  /** Returns the identity with which the agent answers. */
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  /** Reads what a port of a host sends. */
  readPort: ReadPort;
  /** Logs in to the pod of a rental probe. */
  logIn: SshLogin;
  /** Returns the problem of a pod's SSH port; null if it answers. */
  readBanner: typeof readBanner;
  /** Runs a command in the pod of a renter. */
  runInPod: RunInPod;
  /** Verifies proofs of work. */
  verifier: Verifier;
};

/** Reaches agents over TLS, and hosts at their network address. */
export function hostsOnNetwork(options: AgentLinksOptions): HostAccess {
  const { clock, random } = options;
  const links = createAgentLinks(options);
  return {
    ...links,
    readPort,
    logIn: createSshLogin(clock),
    readBanner,
    runInPod: createRunInPod({ connectTo: links.connectTo, clock, random }),
    verifier: createVerifier(),
  };
}
