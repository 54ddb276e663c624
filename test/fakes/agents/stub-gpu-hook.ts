/**
 * A stub of NVIDIA's container toolkit for machines without GPUs: the hook that Docker finds in PATH when it starts. It
 * records its calls and installs a program `nvidia-smi` that lists the requested GPUs.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type HookCall = { containerId: string; visibleDevices: string; capabilities: string };

export type StubGpuHook = {
  /** Folder to put first in the engine's PATH. */
  programs: string;
  /** Calls received, oldest first. */
  calls(): HookCall[];
  /** Makes every later call fail with this text; null: calls succeed again. */
  fail(words: string | null): void;
  /** Sets whether the host has /dev/nvidia-modeset, which the display capability needs. */
  setModeset(present: boolean): void;
  remove(): void;
};

/** File in a container; while it exists, the installed nvidia-smi reports no GPUs, as after a reload of systemd. */
export const LOSE_GPUS = '/gpus-are-lost';

const MODESET_MISSING =
  'nvidia-container-cli: mount error: stat failed: /dev/nvidia-modeset: no such file or directory';

/**
 * The hook reads the container's state from standard input. It names the bundle, whose config contains the environment
 * and the root file system.
 */
const HOOK = `#!/bin/sh
state=$(cat)
bundle=$(printf %s "$state" | sed -n 's/.*"bundle":"\\([^"]*\\)".*/\\1/p')
id=$(printf %s "$state" | sed -n 's/.*"id":"\\([^"]*\\)".*/\\1/p')
# Docker appends its variables, and of two variables with the same name the last one counts.
value() { grep -o "\\"$1=[^\\"]*\\"" "$bundle/config.json" | tail -1 | tr -d '"' | cut -d= -f2; }
devices=$(value NVIDIA_VISIBLE_DEVICES)
capabilities=$(value NVIDIA_DRIVER_CAPABILITIES)
echo "$id $devices $capabilities" >>"$HERE/calls"
if [ -e "$HERE/fail" ]; then cat "$HERE/fail" >&2; exit 1; fi
case ",$capabilities," in *,display,*)
  if [ -e "$HERE/no-modeset" ]; then echo '${MODESET_MISSING}' >&2; exit 1; fi;;
esac
root=$(grep -o '"root":{"path":"[^"]*"' "$bundle/config.json" | cut -d'"' -f6)
mkdir -p "$root/usr/bin"
rm -f "$root${LOSE_GPUS}"
{
  echo '#!/bin/sh'
  echo "if [ -e ${LOSE_GPUS} ]; then echo 'Failed to initialize NVML: Unknown Error'; exit 255; fi"
  number=0
  for device in $(echo "$devices" | tr ',' ' '); do
    case $device in
      MIG-*) echo "echo 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)'"
        echo "echo '  MIG 1g.10gb     Device  $number: (UUID: $device)'";;
      *) echo "echo 'GPU $number: NVIDIA H100 80GB HBM3 (UUID: $device)'";;
    esac
    number=$((number + 1))
  done
} >"$root/usr/bin/nvidia-smi"
chmod 755 "$root/usr/bin/nvidia-smi"
`;

export function createStubGpuHook(): StubGpuHook {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-hook-'));
  const file = (name: string) => join(folder, name);
  const script = HOOK.replace('#!/bin/sh\n', `#!/bin/sh\nHERE='${folder}'\n`);
  writeFileSync(file('nvidia-container-runtime-hook'), script, { mode: 0o755 });
  const setFile = (name: string, text: string | null) => {
    if (text === null) rmSync(file(name), { force: true });
    else writeFileSync(file(name), text);
  };
  return {
    programs: folder,
    calls() {
      const text = existsSync(file('calls')) ? readFileSync(file('calls'), 'utf8') : '';
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const [containerId = '', visibleDevices = '', capabilities = ''] = line.split(' ');
          return { containerId, visibleDevices, capabilities };
        });
    },
    fail: (words) => setFile('fail', words),
    setModeset: (present) => setFile('no-modeset', present ? null : ''),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
