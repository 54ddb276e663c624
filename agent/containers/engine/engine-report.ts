/** Reads the engine's description of itself, for the doctor. */
import { z } from 'zod';
import { request } from '#shared/http/node-http.ts';

const MAX_ANSWER_CHARS = 1024 * 1024;

const InfoReport = z.object({
  ServerVersion: z.string(),
  Driver: z.string(),
  DriverStatus: z
    .array(z.tuple([z.string(), z.string()]))
    .nullish()
    .catch(null),
  CgroupDriver: z.string().default('unknown'),
  CgroupVersion: z.string().default('1'),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  DefaultRuntime: z.string().default(''),
  CDISpecDirs: z.array(z.string()).nullish(),
  DockerRootDir: z.string(),
  SecurityOptions: z.array(z.string()).nullish(),
  LiveRestoreEnabled: z.boolean().default(false),
  MemoryLimit: z.boolean().default(false),
  PidsLimit: z.boolean().default(false),
  CpuCfsQuota: z.boolean().default(false),
});
const VersionReport = z.object({ ApiVersion: z.string() });

export type EngineReport = {
  version: string;
  apiVersion: string;
  storageDriver: string;
  /** `extfs`, `xfs`, …; empty if the driver does not report it. */
  backingFilesystem: string;
  cgroupDriver: string;
  cgroupVersion: string;
  runtimes: readonly string[];
  defaultRuntime: string;
  /** Empty if the engine does not support CDI. */
  cdiSpecDirs: readonly string[];
  rootDir: string;
  seccomp: boolean;
  rootless: boolean;
  liveRestore: boolean;
  /** Limits that kernel and engine support. */
  limits: { memory: boolean; pids: boolean; cpu: boolean };
};

/** Rejects with the system error (ENOENT, EACCES, ECONNREFUSED, AbortError) or an error that describes the response. */
export async function readEngineReport(
  socketPath: string,
  signal: AbortSignal,
): Promise<EngineReport> {
  const [info, version] = await Promise.all([
    ask(socketPath, '/info', signal).then((answer) => InfoReport.parse(answer)),
    ask(socketPath, '/version', signal).then((answer) => VersionReport.parse(answer)),
  ]);
  const security = info.SecurityOptions ?? [];
  const named = (name: string) => security.some((option) => option.startsWith(`name=${name}`));
  const backing = info.DriverStatus?.find(([name]) => name === 'Backing Filesystem');
  return {
    version: info.ServerVersion,
    apiVersion: version.ApiVersion,
    storageDriver: info.Driver,
    backingFilesystem: backing?.[1] ?? '',
    cgroupDriver: info.CgroupDriver,
    cgroupVersion: info.CgroupVersion,
    runtimes: Object.keys(info.Runtimes ?? {}),
    defaultRuntime: info.DefaultRuntime,
    cdiSpecDirs: info.CDISpecDirs ?? [],
    rootDir: info.DockerRootDir,
    seccomp: named('seccomp'),
    rootless: named('rootless'),
    liveRestore: info.LiveRestoreEnabled,
    limits: { memory: info.MemoryLimit, pids: info.PidsLimit, cpu: info.CpuCfsQuota },
  };
}

function ask(socketPath: string, path: string, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path, signal, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
        if (body.length > MAX_ANSWER_CHARS)
          call.destroy(new Error(`the response to GET ${path} is too large`));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode !== 200) {
          reject(new Error(`GET ${path} returned status ${response.statusCode}`));
          return;
        }
        try {
          resolve(JSON.parse(body));
        } catch (cause) {
          reject(new Error(`GET ${path} did not return JSON`, { cause }));
        }
      });
    });
    call.on('error', reject);
    call.end();
  });
}
