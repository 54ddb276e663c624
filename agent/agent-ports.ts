/** What an agent is given to work with. */
import type { Enrolment } from '#shared/api/agent/identity.ts';
import type { Identity } from '#shared/signing/identity.ts';
import type { CertificateSource } from '#shared/tls/listener-certificate.ts';
import type { GpuMetrics } from './config.ts';
import type { HostProbe } from './host/host-probe.ts';
import type { ReadHostSources } from './host/host-sources.ts';
import type { Auth } from './identity/auth.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { PodCorePorts } from './pod-core.ts';
import type { UpdatePorts } from './updates/update.service.ts';

/** Everything but what the parts of an agent tell each other. */
export type AgentPorts = Omit<
  PodCorePorts,
  | 'onFirewallDrift'
  | 'onOrphans'
  | 'onImageRemoved'
  | 'onPulled'
  | 'onLaunchStep'
  | 'onOom'
  | 'onReconciled'
  | 'diskPercent'
> & {
  hostProbe: HostProbe;
  hostSources: ReadHostSources;
  /** Who may call. */
  auth: Auth;
  metrics: Metrics;
  identity: Identity;
  /** Null until the provider has enrolled the identity's key. */
  readEnrolment(): Enrolment | null;
  /** Null: the listener is plain. */
  certificates: CertificateSource | null;
  /** Whether metrics have a plain listener of their own, and none on the main one. */
  separateMonitoring: boolean;
  gpuMetrics: GpuMetrics;
  /** The host's own name. */
  hostname: string;
  /** For what is written to be removed again: drills, challenges. Made when needed. */
  scratchFolder: string;
  /** Null: this agent is not to update itself. */
  updates: UpdatePorts | null;
  /** Name of the image that cards prove their work with, where it was built. */
  gpuProofImage: string;
};
