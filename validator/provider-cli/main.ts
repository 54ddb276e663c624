/** `npm run provider`: the provider's command line. */
import { homedir } from 'node:os';
import { systemClock } from '#shared/runtime/clock.ts';
import { exitStatusOf } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runProvider } from './command-line.ts';
import { providerHome } from './config.ts';

const terminal = {
  out: (text: string) => void process.stdout.write(text),
  error: (text: string) => void process.stderr.write(text),
};

try {
  const home = providerHome(process.env, homedir());
  const ports = { home, clock: systemClock, random: systemRandom };
  process.exitCode = await runProvider(process.argv.slice(2), ports, terminal);
} catch (error) {
  terminal.error(`podwright-provider: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}
