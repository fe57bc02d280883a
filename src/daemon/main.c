/* main.c -- rwriterd: placeholder until the daemon is assembled */
int main(void);
int
main(void)
{
	return 0;
}
