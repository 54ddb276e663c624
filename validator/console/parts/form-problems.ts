/** Assigns the problems of a rejected request to the fields of its form. Pure. */
import type { ApiFailure, FieldProblem } from '../api/failure.ts';

/** Returns the problem of the field `name` of the body; null if it has none. */
export function problemOf(failure: ApiFailure | null, name: string): string | null {
  const found = failure?.facts.problems.find(({ field }) => memberOf(field) === name);
  return found?.message ?? null;
}

/** Returns the problems that concern no field of the form. */
export function otherProblems(failure: ApiFailure, names: readonly string[]): FieldProblem[] {
  return failure.facts.problems.filter(({ field }) => !names.includes(memberOf(field)));
}

/** The member of the body: `body.price.usd` is part of `price`. */
function memberOf(field: string): string {
  return field.replace(/^(?:body|query|path)\./, '').split(/[.[]/, 1)[0] ?? '';
}
