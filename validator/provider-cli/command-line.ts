/** Parses the arguments of `npm run provider`, runs the command, and prints its result or its problem. */
import { readArguments } from '#shared/runtime/arguments.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { COMMANDS, type Command, type Input, type Outcome, type Ports, usage } from './commands.ts';
import { problemOf } from './problem.ts';

/** Commands to paste, while `npm start` runs. */
export const EXAMPLES = `export PROVIDER_HOME=$PWD/var/my-provider
npm run --silent provider -- key
npm run --silent provider -- login --url "$(jq -r .portal_url var/demo.json)"
ID=$(npm run --silent provider -- add --address 10.20.30.40 --gpu-type H100 --gpu-count 8 --price 2.2 --json | jq -r .id)
npm run --silent provider -- list
npm run --silent provider -- price $ID 2.5
npm run --silent provider -- notice $ID --removal --in 72h --reason 'end of the lease'
npm run --silent provider -- list $ID
npm run --silent provider -- notice $ID --withdraw
npm run --silent provider -- remove $ID
`;

const HELP = `Usage: npm run provider -- COMMAND [options]

The provider's command line for the portal of a central API. Key and session are in PROVIDER_HOME (~/.podwright), in
files of mode 0600. Options of all commands: --json prints JSON for scripts; --help prints the help of a command.

${Object.values(COMMANDS)
  .map(({ help }) => help)
  .join('\n\n')}

Examples, while npm start runs:

${EXAMPLES.replace(/^/gm, '  ').trimEnd()}

A failure prints the problem and what to do; with --json, one line {"code", "message", "hint"}. The exit status is 2 for
wrong usage, 6 for a file that cannot be used, and 1 for other failures.
`;

export type Terminal = { out(text: string): void; error(text: string): void };

/** Returns the exit status. */
export async function runProvider(
  args: readonly string[],
  ports: Omit<Ports, 'warn'>,
  terminal: Terminal,
): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === '--help') {
    (name === undefined ? terminal.error : terminal.out)(HELP);
    return name === undefined ? 2 : 0;
  }
  if (name === '--version') {
    terminal.out(`${VERSION}\n`);
    return 0;
  }
  const isJson = rest.includes('--json');
  const warn = (message: string) => terminal.error(`podwright-provider: warning: ${message}\n`);
  try {
    const outcome = await runCommand(name, rest, { ...ports, warn });
    terminal.out(isJson ? `${JSON.stringify(outcome.json)}\n` : outcome.text);
    return 0;
  } catch (error) {
    const { exitStatus, ...problem } = problemOf(error, { command: name });
    const { message, hint } = problem;
    terminal.error(
      isJson ? `${JSON.stringify(problem)}\n` : `podwright-provider: ${message}\n  ${hint}\n`,
    );
    return exitStatus;
  }
}

async function runCommand(name: string, args: readonly string[], ports: Ports): Promise<Outcome> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    const nearest = nearestName(name, Object.keys(COMMANDS));
    const suggestion = nearest === null ? '' : `; did you mean ${nearest}?`;
    throw usage('', `unknown command ${name}${suggestion}`);
  }
  if (args.includes('--help')) {
    const help = `npm run provider -- ${command.help}\n`;
    return { json: { help }, text: help };
  }
  return command.run(inputOf(name, command, args), ports);
}

/** Throws a usage error with all problems of the arguments. */
function inputOf(name: string, command: Command, args: readonly string[]): Input {
  const { words: names, optional = 0, options } = command;
  const parsed = readArguments(args, { ...options, json: { type: 'boolean' } }, names.length);
  const missing = names.slice(parsed.words.length, names.length - optional);
  const { json: _, ...values } = parsed.values as Input['values'];
  const input = { words: parsed.words, values };
  const problems = [
    ...parsed.problems,
    ...(missing.length > 0 ? [`${name} needs ${missing.join(' and ')}`] : []),
    ...(command.problems?.(input) ?? []),
  ];
  if (problems.length > 0) throw usage(name, problems.join('\n'));
  return input;
}
