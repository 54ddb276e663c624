import { formatBytes, formatUsd } from './format.ts';

/** US dollars. Null is shown as a dash. */
export function Money({ usd, per }: { usd: number | null; per?: string }) {
  if (usd === null) return <>–</>;
  return (
    <span className="number">
      {formatUsd(usd)}
      {per === undefined ? null : <span className="faint"> / {per}</span>}
    </span>
  );
}

/** A size in binary units. Null is shown as a dash. */
export function Bytes({ bytes }: { bytes: number | null }) {
  return <span className="number">{bytes === null ? '–' : formatBytes(bytes)}</span>;
}
