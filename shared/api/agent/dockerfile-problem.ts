/** What a renter has to change about a Dockerfile: a sentence that begins with the line, where one is to blame. */
export class DockerfileProblem extends Error {
  override name = 'DockerfileProblem';

  constructor(sentence: string, line?: number) {
    super(line === undefined ? sentence : `Line ${line}: ${sentence}`);
  }
}
