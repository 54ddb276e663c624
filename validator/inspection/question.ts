/** One question to an agent that has shown itself: its answer, or that there was none, and why. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Unanswered } from '../checks/measured.ts';

export const MAX_PROBLEM_CHARS = 300;

export type Asked<T> = { answer: T | null; unanswered: Unanswered[] };

export const NOT_ASKED: Asked<never> = { answer: null, unanswered: [] };

/** Rejects only for what is our own fault. A refusal and silence are the same here: by either nothing is learnt. */
export async function ask<T>(
  question: Unanswered['question'],
  asking: Promise<T>,
): Promise<Asked<T>> {
  try {
    return { answer: await asking, unanswered: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const problem = error.message.slice(0, MAX_PROBLEM_CHARS);
    return { answer: null, unanswered: [{ question, problem, repeated: false }] };
  }
}
