/** An agent that shows itself lets itself be looked into: what it leaves unanswered time after time counts. */
import { failed, type Judge, passed } from './check.ts';

/** A question may be lost on its way, or come at a bad moment; as with agents that cannot be reached at all. */
const IN_A_ROW = 3;

export const judgeAnswers: Judge = ({ measured: { unanswered } }) => {
  if (unanswered.length === 0) return passed('all that was asked');
  const measured = unanswered.map(({ question, problem }) => `${question}: ${problem}`).join('; ');
  const message = 'The agent tells what it has, and leaves other questions unanswered';
  const isRepeated = unanswered.every(({ repeated }) => repeated);
  return { ...failed('QUESTIONS_UNANSWERED', measured, message), inARow: IN_A_ROW, isRepeated };
};
