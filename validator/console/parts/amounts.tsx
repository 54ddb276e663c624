import { formatBytes, formatUsd, formatUsdExact } from './format.ts';

type MoneyProps = {
  usd: number | null;
  per?: string;
  /** True for a part of a total: shows all digits, so that the parts add up. */
  isExact?: boolean;
};

/** US dollars. Null is shown as a dash. */
export function Money({ usd, per, isExact = false }: MoneyProps) {
  if (usd === null) return <>–</>;
  return (
    <span className="number">
      {isExact ? formatUsdExact(usd) : formatUsd(usd)}
      {per === undefined ? null : <span className="faint"> / {per}</span>}
    </span>
  );
}

/** A size in binary units. Null is shown as a dash. */
export function Bytes({ bytes }: { bytes: number | null }) {
  return <span className="number">{bytes === null ? '–' : formatBytes(bytes)}</span>;
}
