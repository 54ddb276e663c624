/** CPU time of work in this thread. */
const MICROS_PER_SECOND = 1e6;

/** CPU time of this thread, so that other load on the host counts for neither side. */
export async function cpuSecondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(began);
  return (user + system) / MICROS_PER_SECOND;
}
