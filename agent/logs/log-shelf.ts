/** Log files in use: opened with the first reader, shared by all of a container's, closed with the last. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { ContainerState } from '../containers/engine/engine.ts';
import { type LogFile, openLogFile } from './log-file.ts';

export type LogShelf = ReturnType<typeof createLogShelf>;

export function createLogShelf(clock: Clock) {
  const shelf = new Map<string, { opening: Promise<LogFile>; readers: number }>();

  async function giveBack(path: string, opening: Promise<LogFile>): Promise<void> {
    const place = shelf.get(path);
    if (place?.opening !== opening) return;
    place.readers -= 1;
    if (place.readers > 0) return;
    shelf.delete(path);
    await opening.then((log) => log.close()).catch(() => undefined);
  }

  return {
    /** Null when the file is out of reach. `done` has to be called once. */
    async take({ id, logPath }: ContainerState) {
      if (logPath === '') return null;
      const place = shelf.get(logPath) ?? { opening: openLogFile(logPath, id, clock), readers: 0 };
      shelf.set(logPath, place);
      place.readers += 1;
      const done = () => giveBack(logPath, place.opening);
      try {
        return { log: await place.opening, done };
      } catch {
        await done();
        return null;
      }
    },
  };
}
