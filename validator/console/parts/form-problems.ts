/** Assigns the problems of a rejected request to the fields of its form. Pure. */
import { ApiFailure, type FieldProblem, notSent } from '../api/failure.ts';
import type { Read } from './container-text.ts';

/** Returns the different problems of the field `name` of the body, in the order of the server. */
export function problemsOf(failure: ApiFailure | null, name: string): readonly string[] {
  const problems = failure?.facts.problems ?? [];
  const own = problems.filter(({ field }) => memberOf(field) === name);
  return [...new Set(own.map(({ message }) => message))];
}

/** Returns the problems that concern no field of the form. */
export function otherProblems(failure: ApiFailure, names: readonly string[]): FieldProblem[] {
  return failure.facts.problems.filter(({ field }) => !names.includes(memberOf(field)));
}

/**
 * Assigns problems of a request's members to the fields that have their values. `fields` has the name of the field by
 * the member; other members are those of the same name.
 */
export function assignedTo(
  fields: Readonly<Record<string, string>>,
  failure: ApiFailure,
): ApiFailure {
  const problems = failure.facts.problems.map((problem) => {
    const name = fields[memberOf(problem.field)];
    return name === undefined ? problem : { ...problem, field: `body.${name}` };
  });
  return new ApiFailure(failure.message, { ...failure.facts, problems });
}

/** Problems of the texts of fields, by the names of the fields. */
export function textProblems(fields: Readonly<Record<string, Read<unknown>>>): FieldProblem[] {
  return Object.entries(fields).flatMap(([name, { problems }]) =>
    problems.map((message) => ({ field: `body.${name}`, message })),
  );
}

/** Throws an `ApiFailure` with all problems of the texts of fields, if there are any. */
export function requireReadable(fields: Readonly<Record<string, Read<unknown>>>): void {
  const problems = textProblems(fields);
  if (problems.length > 0) throw notSent('A field cannot be read', problems);
}

/** The member of the body: `body.price.usd` is part of `price`. */
function memberOf(field: string): string {
  return field.replace(/^(?:body|query|path)\./, '').split(/[.[]/, 1)[0] ?? '';
}
