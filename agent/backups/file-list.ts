/** A bounded list of paths, with the number of all paths. */
import { type FileList, MAX_LISTED_CHARS, MAX_LISTED_PATHS } from '#shared/api/agent/operations.ts';

/** Counts every path, and retains the first ones that fit into an operation's report. */
export function createFileList(): { add(path: string): void; list: FileList } {
  const list: FileList = { count: 0, paths: [] };
  let chars = 0;
  return {
    list,
    add(path) {
      list.count += 1;
      chars += path.length;
      if (list.paths.length < MAX_LISTED_PATHS && chars <= MAX_LISTED_CHARS) list.paths.push(path);
    },
  };
}
