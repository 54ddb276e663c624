import type { ReactNode } from 'react';
import { linesOf } from './rent-request.ts';

type ChecksFieldProps = {
  legend: string;
  hint?: ReactNode;
  options: readonly { value: string; label: string }[];
  /** Chosen values, one per line. */
  chosen: string;
  onChange: (chosen: string) => void;
};

/** A choice of several values. */
export function ChecksField({ legend, hint, options, chosen, onChange }: ChecksFieldProps) {
  const values = linesOf(chosen);
  const toggle = (value: string) =>
    onChange(
      (values.includes(value)
        ? values.filter((other) => other !== value)
        : [...values, value]
      ).join('\n'),
    );
  return (
    <fieldset className="choices">
      <legend>{legend}</legend>
      <ul className="plain">
        {options.map(({ value, label }) => (
          <li key={value}>
            <label>
              <input
                type="checkbox"
                checked={values.includes(value)}
                onChange={() => toggle(value)}
              />
              {label}
            </label>
          </li>
        ))}
      </ul>
      {hint === undefined ? null : <p className="hint">{hint}</p>}
    </fieldset>
  );
}
