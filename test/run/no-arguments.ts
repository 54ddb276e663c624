/** Command lines of programs without options. */
import { VERSION } from '#shared/runtime/version.ts';

const WRONG_USE = 2;

/** Ends the process after --help, --version or a wrong argument; returns if there is no argument. */
export function acceptNoArguments(help: string): void {
  const words = process.argv.slice(2);
  if (words.length === 0) return;
  const isAlone = words.length === 1;
  if (isAlone && words[0] === '--version') end(process.stdout, `${VERSION}\n`, 0);
  if (isAlone && words[0] === '--help') end(process.stdout, help, 0);
  end(process.stderr, help, WRONG_USE);
}

function end(stream: NodeJS.WriteStream, text: string, status: number): never {
  stream.write(text);
  process.exit(status);
}
