import { Fragment } from 'react';

/** A path, which breaks into lines only after slashes while it fits into its column. */
export function FolderPath({ path }: { path: string }) {
  let at = 0;
  return (
    <code className="path">
      {path.split(/(?<=.\/)/).map((part) => {
        at += part.length;
        return (
          <Fragment key={at}>
            {part}
            <wbr />
          </Fragment>
        );
      })}
    </code>
  );
}
