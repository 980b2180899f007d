/** The path of the backup route, on the store's listener. */
export const backupPath = "/davit/v1/backup";
