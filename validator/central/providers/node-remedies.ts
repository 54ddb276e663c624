/**
 * Commands that fix failed checks and verify the fix, by reason code. They supplement the validator's text. Pure data.
 */

export type NodeRemedy = {
  /** Null if no single command fixes the fault. */
  fix_command: string | null;
  /** Command that tests whether the fault is fixed, before the validator's next check. */
  verify_command: string;
  /** Requirements of the fix command; null if the agent's privileges suffice. */
  requires: string | null;
};

const DOCTOR = 'npm run agent -- doctor';
const ROOT = 'root on the host';
const ENROL = {
  fix_command: 'npm run --silent agent -- enrol request',
  requires: 'the hotkey, to sign the line that the command prints',
};
const REBOOT = { fix_command: 'systemctl reboot', requires: ROOT };
/** The agent's certificate is self-signed, so curl cannot verify it. `PORT` is replaced by the port of the node. */
const UPDATE_STATUS = 'curl -sk https://127.0.0.1:PORT/update-status';

/** Remedies by reason code of the validator's checks. */
const BY_CODE: Readonly<Record<string, Partial<NodeRemedy>>> = {
  AGENT_UNREACHABLE: { fix_command: 'systemctl start podwright-agent', requires: ROOT },
  IDENTITY_CHANGED: ENROL,
  NOT_ENROLLED: ENROL,
  AGENT_IMAGE_OUTDATED: { verify_command: UPDATE_STATUS },
  AGENT_UPDATE_STUCK: { verify_command: UPDATE_STATUS },
  CLOCK_SKEW: {
    fix_command: 'timedatectl set-ntp true',
    verify_command: 'timedatectl status',
    requires: ROOT,
  },
  GPU_UNREADABLE: { ...REBOOT, verify_command: 'nvidia-smi' },
  GPU_RUNTIME_NVML_MISMATCH: { ...REBOOT, verify_command: 'nvidia-smi' },
  GPU_SOURCES_DISAGREE: { ...REBOOT, verify_command: 'nvidia-smi' },
  GPU_BUSY_OUTSIDE_POD: { verify_command: 'nvidia-smi' },
  GPU_COUNT_MISMATCH: { verify_command: 'nvidia-smi -L' },
  GPU_MODEL_MISMATCH: { verify_command: 'nvidia-smi -L' },
  GPU_RUNTIME_DEVICE_FAULT: {
    fix_command: 'nvidia-ctk runtime configure --runtime=docker && systemctl restart docker',
    requires: `${ROOT}, and no pod on the host`,
  },
  CONTAINER_START_FAILED: { verify_command: 'docker run --rm hello-world' },
  BACKUP_ENGINE_MISSING: {
    fix_command: 'apt-get install -y restic',
    verify_command: 'restic version',
    requires: ROOT,
  },
  DISK_LOW: { verify_command: 'docker system df' },
  FABRIC_NOT_READY: {
    fix_command: 'systemctl start nvidia-fabricmanager',
    verify_command: 'systemctl is-active nvidia-fabricmanager',
    requires: ROOT,
  },
  GPU_PROOF_MISSING: {
    fix_command: 'docker build -t podwright.local/gpu-proof:3 agent/gpu-proof',
    verify_command: 'docker image inspect podwright.local/gpu-proof:3',
  },
};

/**
 * Returns the remedy for a code, for an agent at `port`. The verify command of an unknown code is the doctor.
 */
export function remedyOf(code: string, port: number): NodeRemedy {
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  const { verify_command: verify = DOCTOR } = known ?? {};
  const verify_command = verify.replace('PORT', String(port));
  return { fix_command: null, requires: null, ...known, verify_command };
}
