import { memo, useState } from 'react';
import { CopyButton } from '../parts/copy-button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { visibleParts } from './hidden-characters.ts';
import type { LogEntry, LogLine } from './log-lines.ts';
import { SHOWN_CHARS } from './log-rows.ts';
import { type SearchTerm, searchParts } from './log-search.ts';
import { lineParts } from './log-text.ts';
import { clockTime, type TimeMode, utcTime } from './log-times.ts';

type LogRowProps = {
  entry: LogEntry;
  times: TimeMode;
  /** Name of the pod in a view of several pods. */
  pod: string | null;
  term: SearchTerm | null;
  isCurrentHit: boolean;
};

/** A line or a mark. Memoized: while the log is followed, most rows of a picture stay as they are. */
export const LogRow = memo(function LogRow(props: LogRowProps) {
  const { entry, times, pod, term, isCurrentHit } = props;
  if (entry.kind === 'mark') {
    return (
      <div className={entry.isGap ? 'log-mark gap' : 'log-mark'}>
        {pod === null ? null : `${pod}: `}
        {entry.text}
        {entry.at === ''
          ? null
          : ` After ${clockTime(entry.at, times === 'utc' ? 'utc' : 'local')}.`}
      </div>
    );
  }
  const names = ['log-line', ...(entry.isError ? ['error'] : []), ...(isCurrentHit ? ['hit'] : [])];
  return (
    <div className={names.join(' ')}>
      {times === 'off' ? null : (
        <time dateTime={entry.at} title={utcTime(entry.at)}>
          {clockTime(entry.at, times)}{' '}
        </time>
      )}
      {pod === null ? null : <span className={`log-pod pod-${entry.source % 4}`}>{pod} </span>}
      {entry.isError ? <span className="hidden">stderr: </span> : null}
      <LineContent line={entry} term={term} />
    </div>
  );
});

function LineContent({ line, term }: { line: LogLine; term: SearchTerm | null }) {
  const hidden = line.text.length - SHOWN_CHARS;
  return (
    <>
      {shownParts(line).map(({ text, className, at }) => (
        <span key={at} className={className === '' ? undefined : className}>
          <Hits text={text} term={term} />
        </span>
      ))}
      {hidden > 0 ? <WholeLine line={line} hidden={hidden} /> : null}
    </>
  );
}

/** Parts with the positions at which they begin, up to the number of shown characters. */
function shownParts(line: LogLine) {
  let at = 0;
  return lineParts(line).flatMap(({ text, className }) => {
    const part = { text: text.slice(0, Math.max(SHOWN_CHARS - at, 0)), className, at };
    at += text.length;
    return part.text === '' ? [] : [part];
  });
}

function Hits({ text, term }: { text: string; term: SearchTerm | null }) {
  if (term === null) return <Visible text={text} />;
  let at = 0;
  return searchParts(text, term).map((part) => {
    const key = at;
    at += part.text.length;
    const shown = <Visible key={key} text={part.text} />;
    return part.isHit ? <mark key={key}>{shown}</mark> : shown;
  });
}

/**
 * A text in which characters without a picture have no effect and show their code, from the style sheet. A selection that
 * is copied has the characters themselves.
 */
function Visible({ text }: { text: string }) {
  let at = 0;
  return visibleParts(text).map(({ text: part, code }) => {
    const key = at;
    at += part.length;
    if (code === null) return part;
    return (
      <bdi key={key} className="log-code" data-code={code}>
        {part}
      </bdi>
    );
  });
}

/** Opens a line that is too long for the view. */
function WholeLine({ line, hidden }: { line: LogLine; hidden: number }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button type="button" className="quiet small" onClick={() => setIsOpen(true)}>
        {hidden.toLocaleString('en-US')} more characters
      </button>
      <Dialog title="Line" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <CopyButton text={line.text} label="Copy the line" />
        <pre className="log-whole">
          <Visible text={line.text} />
        </pre>
      </Dialog>
    </>
  );
}
