import { useEffect, useState } from 'react';
import { after } from '../browser/clock.ts';

const SHOWN_MS = 2_000;

type CopyButtonProps = {
  /** The text, or a function that returns a large text when it is copied. */
  text: string | (() => string);
  label?: string;
  /** Advice where the browser has no clipboard. */
  fallback?: string;
};

/** Copies a text. The button shows whether the browser allowed it. */
export function CopyButton({ text, label = 'Copy', fallback }: CopyButtonProps) {
  const [result, setResult] = useState<string | null>(null);
  useEffect(() => (result === null ? undefined : after(SHOWN_MS, () => setResult(null))), [result]);
  const copy = () =>
    // Undefined on pages that are served neither over TLS nor from this computer.
    (
      navigator.clipboard?.writeText(typeof text === 'string' ? text : text()) ??
      Promise.reject(new Error('no clipboard'))
    ).then(
      () => setResult('Copied'),
      () => setResult(fallback ?? 'Select and copy it yourself'),
    );
  return (
    <button
      type="button"
      className="quiet"
      aria-label={result ?? label}
      onClick={() => void copy()}
    >
      <span aria-live="polite">{result ?? 'Copy'}</span>
    </button>
  );
}
