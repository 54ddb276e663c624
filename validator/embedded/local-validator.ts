/**
 * The validator of a local marketplace: small proofs and line measurements, short intervals, simulated GPUs accepted.
 */
import { existsSync } from 'node:fs';
import type { Clock } from '#shared/runtime/clock.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { CertificateSource } from '#shared/tls/listener-certificate.ts';
import { createValidator, type Validator } from '../app.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import type { DatabaseHealth } from '../database/database-watch.ts';
import { SMALL_LINE } from '../inspection/lines/measure-line.ts';
import { SMALL_PROOF } from '../inspection/proof/host-proof.ts';
import { readProbeAccounts } from '../probes/probe-accounts.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { localMetagraph } from '../weights/metagraph.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../weights/weight-policy.ts';
import { LOCAL_CHECKS, LOCAL_WEIGHTS } from './local-policies.ts';

export type LocalValidatorOptions = {
  clock: Clock;
  guard: GuardedClock;
  random: Random;
  log: Log;
  signers: { central: Signer; validator: Signer };
  /** Number of pending signatures of the key thread. */
  signaturesWaiting(): number;
  store: EvidenceStore;
  storeHealth: DatabaseHealth;
  centralUrl: string;
  /** File with the account of hidden rentals; it may be created later. */
  probeAccountsFile: string;
  /** Certificate of the gateway; null serves plain HTTP. */
  certificates: CertificateSource | null;
};

const CHECK_INTERVAL_MS = 60_000;
const LIST_INTERVAL_MS = 1_000;
/** Length of an epoch in milliseconds: short, so that weights appear soon after a start. */
const EPOCH_MS = 120_000;
const EVIDENCE_KEPT_DAYS = 2;
const PROBE_USD_PER_DAY = 20;

export function createLocalValidator(options: LocalValidatorOptions): Validator {
  const { clock, guard, random, log, signers, signaturesWaiting } = options;
  const { store, storeHealth, centralUrl, certificates, probeAccountsFile } = options;
  return createValidator({
    clock,
    guard,
    random,
    log: log.child({ part: 'validator' }),
    signer: signers.validator,
    signaturesWaiting,
    centralUrl,
    probes: {
      readAccounts: () =>
        existsSync(probeAccountsFile) ? readProbeAccounts(probeAccountsFile) : null,
      usdPerDay: PROBE_USD_PER_DAY,
      socks: null,
    },
    centralHotkey: signers.central.hotkey,
    policy: { acceptSimulated: true, checks: { ...readCheckPolicy(), ...LOCAL_CHECKS } },
    proof: SMALL_PROOF,
    line: SMALL_LINE,
    store,
    storeHealth,
    weightSettings: {
      policy: { ...readWeightPolicy(DEFAULT_POLICY_FILE), ...LOCAL_WEIGHTS },
      metagraph: localMetagraph(store, signers.validator.hotkey),
      embedded: true,
      cycleMs: CHECK_INTERVAL_MS,
      epochMs: EPOCH_MS,
      retentionDays: EVIDENCE_KEPT_DAYS,
      verdictDays: EVIDENCE_KEPT_DAYS,
    },
    checkIntervalMs: CHECK_INTERVAL_MS,
    listIntervalMs: LIST_INTERVAL_MS,
    certificates,
    separateMonitoring: true,
  });
}
