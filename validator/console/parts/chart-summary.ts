/** Describes the values of a chart in a sentence, for readers that cannot see it. */
export function summaryOf(label: string, values: readonly (number | null)[], unit: string): string {
  const known = values.filter((value) => value !== null);
  const last = known.at(-1);
  if (last === undefined) return `${label}: no measurements.`;
  const round = (value: number) => Math.round(value * 10) / 10;
  const least = known.reduce((a, b) => Math.min(a, b));
  const most = known.reduce((a, b) => Math.max(a, b));
  return `${label}: ${round(last)} ${unit} now, between ${round(least)} and ${round(most)}.`;
}
