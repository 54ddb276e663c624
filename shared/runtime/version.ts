/** The product's version, reported by every process. Kept equal to package.json by a test. */
export const VERSION = '0.1.0';
