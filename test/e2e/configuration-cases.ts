/** Starts each program with right and wrong variables, which it checks or prints. */
import { expect } from 'vitest';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const LIMITS = { timeoutMs: 50_000, maxOutputBytes: 100_000 };
const ID = '3f9f41a6-0001-4000-8000-000000000001';
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';

type Program = {
  main: string;
  right: Record<string, string>;
  /** Values that the program rejects. */
  wrong: Record<string, string>;
  says: readonly string[];
  mistyped: string;
  meant: string;
};

const WRONG_COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' };

export const PROGRAMS: readonly Program[] = [
  {
    main: 'agent/main.ts',
    right: { AGENT_EXECUTOR_ID: ID },
    wrong: {
      ...WRONG_COLLECTOR,
      AGENT_PORT: 'x',
      AGENT_TLS: 'perhaps',
      AGENT_UPDATE_IMAGE: 'ghcr.io/x/agent',
    },
    says: [
      'OTEL_EXPORTER_OTLP_ENDPOINT: must be',
      'AGENT_EXECUTOR_ID (not set)',
      'AGENT_PORT ("x")',
      'AGENT_TLS ("perhaps")',
    ],
    mistyped: 'AGENT_HOEM',
    meant: 'AGENT_HOME',
  },
  {
    main: 'agent/ssh-gateway/main.ts',
    right: {},
    wrong: { SSH_SNAPSHOT: 'here', SSH_LOG_LEVEL: 'loud' },
    says: ['SSH_SNAPSHOT ("here")', 'SSH_LOG_LEVEL ("loud")'],
    mistyped: 'SSH_HOTS',
    meant: 'SSH_HOST',
  },
  {
    main: 'validator/main.ts',
    right: { VALIDATOR_CENTRAL_URL: 'http://127.0.0.1:1/api', VALIDATOR_CENTRAL_HOTKEY: HOTKEY },
    wrong: { ...WRONG_COLLECTOR, VALIDATOR_PORT: '70000', VALIDATOR_CENTRAL_URL: 'ftp://x' },
    says: [
      'OTEL_EXPORTER_OTLP_ENDPOINT: must be',
      'VALIDATOR_PORT ("70000")',
      'VALIDATOR_CENTRAL_URL ("ftp://x")',
    ],
    mistyped: 'VALIDATOR_HOEM',
    meant: 'VALIDATOR_HOME',
  },
  {
    main: 'validator/central/main.ts',
    right: { CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1', CENTRAL_GATEWAY_HOTKEY: HOTKEY },
    wrong: {
      ...WRONG_COLLECTOR,
      CENTRAL_SMTP_URL: 'http://me:hush@mail.example',
      CENTRAL_CHAT_CLIENT_ID: 'x',
    },
    says: [
      'OTEL_EXPORTER_OTLP_ENDPOINT: must be',
      'CENTRAL_SMTP_URL (http://[hidden]@mail.example/)',
      'CENTRAL_CHAT_TOKEN_URL',
      'required',
    ],
    mistyped: 'CENTRAL_DATABSE',
    meant: 'CENTRAL_DATABASE',
  },
];

const runWith = ({ main }: Program, option: string, env: Record<string, string>) => {
  const { PATH = '' } = process.env;
  const variables = { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env };
  return runCommand(process.execPath, [ROOT + main, option], { ...LIMITS, env: variables });
};

export async function expectConfigurationChecked(program: Program): Promise<void> {
  const { right, wrong, says, mistyped, meant } = program;
  const [refused, accepted, printed] = await Promise.all([
    runWith(program, '--check-config', { [mistyped]: 'x', ...wrong }),
    runWith(program, '--check-config', { ...right, [mistyped]: 'x' }),
    runWith(program, '--print-config', right),
  ]);
  expect(refused).toMatchObject({ exitCode: 6, stdout: '' });
  for (const words of says) expect(refused.stderr).toContain(words);
  expect(refused.stderr).not.toContain('hush');
  expect(accepted).toMatchObject({ exitCode: 0, stdout: 'configuration accepted\n' });
  expect(accepted.stderr).toContain(`${mistyped}: unknown variable`);
  expect(accepted.stderr).toContain(`did you mean ${meant}?`);
  expect(printed).toMatchObject({ exitCode: 0, stderr: '' });
  for (const [name, value] of Object.entries(right)) {
    expect(printed.stdout).toMatch(new RegExp(`^${name} +environment +${value}$`, 'm'));
  }
}
