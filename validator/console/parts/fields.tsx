import { type ReactNode, useEffect, useId } from 'react';
import type { FormState, FormValues } from './form.tsx';
import { problemsOf } from './form-problems.ts';

/** Names of the values of a type. */
type NamesOf<Values extends FormValues, Type> = {
  [Name in keyof Values & string]: Values[Name] extends Type ? Name : never;
}[keyof Values & string];

type FieldProps<Values extends FormValues, Type> = {
  form: FormState<Values>;
  /** Member of the request's body, by which the server's problems are assigned. */
  name: NamesOf<Values, Type>;
  label: string;
  hint?: ReactNode;
  isRequired?: boolean;
};

type TextProps<Values extends FormValues> = FieldProps<Values, string> & {
  type?: 'text' | 'email' | 'password' | 'url' | 'search' | 'datetime-local';
  autoComplete?: string;
  maxLength?: number;
  placeholder?: string;
};

export function TextField<Values extends FormValues>(props: TextProps<Values>) {
  const { form, name, type = 'text', autoComplete = 'off', maxLength, placeholder } = props;
  return (
    <Frame {...props}>
      {(attributes) => (
        <input
          {...attributes}
          type={type}
          autoComplete={autoComplete}
          maxLength={maxLength}
          placeholder={placeholder}
          value={String(form.values[name])}
          onChange={({ target }) => form.set(name, target.value as Values[typeof name])}
        />
      )}
    </Frame>
  );
}

export function TextArea<Values extends FormValues>(
  props: FieldProps<Values, string> & { rows?: number; maxLength?: number },
) {
  const { form, name, rows = 4, maxLength } = props;
  return (
    <Frame {...props}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={rows}
          maxLength={maxLength}
          spellCheck={false}
          value={String(form.values[name])}
          onChange={({ target }) => form.set(name, target.value as Values[typeof name])}
        />
      )}
    </Frame>
  );
}

/** A number; null while the field is empty. */
export function NumberField<Values extends FormValues>(
  props: FieldProps<Values, number | null> & {
    min?: number;
    max?: number;
    step?: number | 'any';
    unit?: string;
  },
) {
  const { form, name, min, max, step = 'any', unit } = props;
  return (
    <Frame {...props} label={unit === undefined ? props.label : `${props.label} (${unit})`}>
      {(attributes) => (
        <input
          {...attributes}
          type="number"
          inputMode="decimal"
          min={min}
          max={max}
          step={step}
          value={String(form.values[name] ?? '')}
          onChange={({ target }) =>
            form.set(
              name,
              (target.value === '' ? null : target.valueAsNumber) as Values[typeof name],
            )
          }
        />
      )}
    </Frame>
  );
}

export type Option = { value: string; label: string };

export function SelectField<Values extends FormValues>(
  props: FieldProps<Values, string> & { options: readonly Option[] },
) {
  const { form, name, options } = props;
  return (
    <Frame {...props}>
      {(attributes) => (
        <select
          {...attributes}
          value={String(form.values[name])}
          onChange={({ target }) => form.set(name, target.value as Values[typeof name])}
        >
          {options.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Frame>
  );
}

export function CheckboxField<Values extends FormValues>(props: FieldProps<Values, boolean>) {
  const { form, name, label, hint } = props;
  const id = useId();
  useLabel(form, name, label);
  const problems = problemsOf(form.failure, name);
  return (
    <div className="field check">
      <input
        id={id}
        type="checkbox"
        aria-describedby={`${id}-hint`}
        aria-invalid={problems.length > 0}
        checked={form.values[name] === true}
        onChange={({ target }) => form.set(name, target.checked as Values[typeof name])}
      />
      <label htmlFor={id}>{label}</label>
      <Hint id={`${id}-hint`} hint={hint} problems={problems} />
    </div>
  );
}

type Attributes = {
  id: string;
  name: string;
  required: boolean;
  'aria-describedby': string;
  'aria-invalid': boolean;
};

function Frame<Values extends FormValues, Type>(
  props: FieldProps<Values, Type> & { children: (attributes: Attributes) => ReactNode },
) {
  const { form, name, label, hint, isRequired = false, children } = props;
  const id = useId();
  useLabel(form, name, label);
  const problems = problemsOf(form.failure, name);
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {isRequired ? null : <span className="faint"> (optional)</span>}
      </label>
      {children({
        id,
        name,
        required: isRequired,
        'aria-describedby': `${id}-hint`,
        'aria-invalid': problems.length > 0,
      })}
      <Hint id={`${id}-hint`} hint={hint} problems={problems} />
    </div>
  );
}

/** Registers the label of a field, by which errors of the form refer to it. */
function useLabel<Values extends FormValues>(
  { labels }: FormState<Values>,
  name: string,
  label: string,
): void {
  useEffect(() => {
    labels.set(name, label);
    return () => void labels.delete(name);
  }, [labels, name, label]);
}

function Hint(props: { id: string; hint: ReactNode; problems: readonly string[] }) {
  const { id, hint, problems } = props;
  return (
    <div id={id} className="hint">
      {problems.map((problem) => (
        <p key={problem} className="problem">
          {problem}
        </p>
      ))}
      {hint === undefined ? null : <p>{hint}</p>}
    </div>
  );
}
