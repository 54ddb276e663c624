import { type FormEvent, type ReactNode, useState } from 'react';
import { type ApiFailure, failureOf } from '../api/failure.ts';
import { FailureNotice } from './failure-notice.tsx';
import { assignedTo } from './form-problems.ts';

export type FormValues = Record<string, string | number | boolean | null>;

export type FormState<Values extends FormValues> = {
  values: Values;
  set: <Name extends keyof Values>(name: Name, value: Values[Name]) => void;
  /** Error of the last submission; null while it runs and after a success. */
  failure: ApiFailure | null;
  /** Labels of the shown fields by their names. The fields register themselves. */
  labels: Map<string, string>;
  isPending: boolean;
  submit: () => Promise<void>;
  /** Returns to the initial values. */
  reset: () => void;
};

/**
 * State of a form. `send` sends the values and rejects with the error that the form shows. Typed values stay after an
 * error and after an expired session, whose log-in dialog opens over the page. `fields` has the names of fields by
 * members of the request, where these differ.
 */
export function useForm<Values extends FormValues>(
  initial: Values,
  send: (values: Values) => Promise<unknown>,
  fields: Readonly<Record<string, keyof Values & string>> = {},
): FormState<Values> {
  const [values, setValues] = useState(initial);
  const [labels] = useState(() => new Map<string, string>());
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [isPending, setIsPending] = useState(false);
  return {
    values,
    set: (name, value) => setValues((before) => ({ ...before, [name]: value })),
    failure,
    labels,
    isPending,
    reset: () => setValues(initial),
    async submit() {
      setFailure(null);
      setIsPending(true);
      try {
        await send(values);
      } catch (error) {
        setFailure(assignedTo(fields, failureOf(error)));
      } finally {
        setIsPending(false);
      }
    },
  };
}

type FormProps<Values extends FormValues> = {
  form: FormState<Values>;
  /** Text of the button. */
  action: string;
  /** Further buttons beside it. */
  extra?: ReactNode;
  children: ReactNode;
};

/** A form with its error above its button. Problems of fields are shown at the fields. */
export function Form<Values extends FormValues>({
  form,
  action,
  extra,
  children,
}: FormProps<Values>) {
  const { failure, labels, isPending } = form;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    // The event of a form in a dialog also reaches the form that contains the dialog's button, and would send it too.
    event.stopPropagation();
    if (!isPending) void form.submit();
  };
  return (
    <form onSubmit={onSubmit} className="form">
      {children}
      {failure === null ? null : <FailureNotice error={failure} labels={labels} />}
      <div className="row">
        <button type="submit" className="primary" aria-disabled={isPending}>
          {isPending ? 'Please wait …' : action}
        </button>
        {extra}
      </div>
    </form>
  );
}
